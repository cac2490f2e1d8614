"""Dataclasses to JSON and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NewType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.report.codec import CodecError, document, plain, read

Name = NewType("Name", str)


class Colour(Enum):
    RED = "the colour of stop"
    GREEN = "the colour of go"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    name: Name
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    inner: Inner | None
    colour: Colour
    side: Literal["left", "right"]
    counts: Mapping[str, int]
    flag: bool


outers = st.builds(
    Outer,
    inner=st.none()
    | st.builds(
        Inner, name=st.text(), numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(tuple)
    ),
    colour=st.sampled_from(Colour),
    side=st.sampled_from(("left", "right")),
    counts=st.dictionaries(st.text(), st.integers()),
    flag=st.booleans(),
)


@given(outers)
def test_what_is_written_is_read(outer: Outer):
    text = document(outer)
    assert text.isascii()
    assert "\n" not in text
    assert read(Outer, json.loads(text)) == outer


def test_an_enumeration_is_written_by_name():
    assert plain(Colour.GREEN) == "green"


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"inner": None},
        {"inner": None, "colour": "GREEN", "side": "left", "counts": {}, "flag": True},
        {"inner": None, "colour": "green", "side": "up", "counts": {}, "flag": True},
        {"inner": None, "colour": "green", "side": "left", "counts": {"x": 1.5}, "flag": True},
        {"inner": None, "colour": "green", "side": "left", "counts": {}, "flag": 1},
        {"inner": {"name": 1}, "colour": "green", "side": "left", "counts": {}, "flag": True},
        {
            "inner": {"name": "x", "numbers": [True]},
            "colour": "green",
            "side": "left",
            "counts": {},
            "flag": True,
        },
    ],
)
def test_what_does_not_fit_is_an_error(content: object):
    with pytest.raises(CodecError):
        read(Outer, content)


@pytest.mark.parametrize("content", [{1, 2}, object(), b"x"])
def test_what_has_no_place_in_a_result_is_a_bug(content: object):
    with pytest.raises(TypeError):
        plain(content)


def test_there_is_no_nan_in_json():
    with pytest.raises(ValueError, match="JSON compliant"):
        document(float("nan"))
