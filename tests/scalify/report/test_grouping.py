"""Names that differ in numbers only."""

import pytest

from scalify.report.grouping import grouped, pattern


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["x"], "x"),
        (["layers.7.wq"], "layers.7.wq"),
        (["layers.0.wq", "layers.1.wq", "layers.2.wq"], "layers.*.wq"),
        (["layers.1.wq", "layers.2.wq"], "layers.{1-2}.wq"),
        (["layers.0.wq", "layers.2.wq", "layers.3.wq"], "layers.{0,2-3}.wq"),
        (["layers.10.w2", "layers.9.w2"], "layers.{9-10}.w2"),
        ([f"p{number}" for number in range(0, 20, 2)], "p*"),
        (["h0.w1", "h1.w2"], "h*.w*"),
        (["p3.4", "p4.5", "p7.8"], "p{3-4,7}.*"),
        (["layers.0.experts.0", "layers.0.experts.1", "layers.1.experts.0"], "layers.*.experts.*"),
        (["p" + "9" * 30, "p" + "8" * 30], "p{" + "8" * 18 + "," + "9" * 18 + "}*"),
    ],
)
def test_numbers_that_differ_are_left_open(names: list[str], shown: str):
    assert pattern(names) == shown


def test_what_is_said_of_names_keeps_them_apart_and_the_first_one_leads():
    said = {"a.1": "x", "b": "y", "a.0": "x", "a.2": "z"}
    groups = grouped(said, str, lambda name: said[name])
    assert [(group.name, group.items) for group in groups] == [
        ("a.*", ("a.1", "a.0")),
        ("b", ("b",)),
        ("a.2", ("a.2",)),
    ]
    assert groups[0].first == "a.1"
