import numpy as np
import pytest
from graphs import Graph

from magneton.profile.lookup import find_operators, operator_names
from magneton.profile.model import Profile


@pytest.fixture(scope="module")
def profile() -> Profile:
    graph = Graph(phase="prefill")
    for layer in (1, 11):
        graph.module = f"model.layers.{layer}.mlp"
        h = graph.op("aten._softmax.default", np.tanh, graph.input("x", np.ones(3)))
        graph.module = f"model.layers.{layer}.mlp.up_proj"
        graph.op("aten.add_.Tensor", np.exp, h)
    graph.phase, graph.module = "decode", ""
    graph.op("aten.mm.default", np.exp, h)
    return graph.profile()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("aten._softmax.default", [0, 2]),
        ("aten._softmax", [0, 2]),
        ("aten.softmax", [0, 2]),  # people leave out the underscore
        ("aten.add_", [1, 3]),
        ("aten.soft", []),  # a part of a word is no name
        ("aten", [0, 1, 2, 3, 4]),
        ("model.layers.1", [0, 1]),  # and not 11
        ("model.layers.1.mlp.up_proj", [1]),
        ("*softmax*", [0, 2]),
        ("model.layers.*.up_proj", [1, 3]),
        ("", []),
    ],
)
def test_names_modules_and_patterns(profile: Profile, wanted: str, found: list[int]) -> None:
    assert list(find_operators(profile, wanted)) == found


def test_one_phase_only(profile: Profile) -> None:
    assert list(find_operators(profile, "aten", "decode")) == [4]


def test_every_name_offered_finds_something(profile: Profile) -> None:
    names = operator_names(profile)
    assert "model.layers.11" in names
    assert all(find_operators(profile, name) for name in names)
    assert "model" not in operator_names(profile, "decode")
