import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_rows import DOUBT, SINGLE_ROWS, key, operator, origin, value

from magneton.profile.model import Operator
from magneton.profile.origin import Origin
from magneton.profile.sketches import Sketch
from magneton.record.codec import CodecError, decode, encode
from magneton.record.journal import Row, SketchRow

numbers = st.floats(allow_nan=True, allow_infinity=True)
counts = st.integers(0, 2**62)
sketches = st.builds(
    Sketch,
    count=counts,
    pos_inf=counts,
    neg_inf=counts,
    nan=counts,
    huge=counts,
    distinct=counts,
    rms=numbers,
    first=st.integers(-2000, 2000),
    cos_sum=st.tuples(*[numbers] * 9),
    sin_sum=st.tuples(*[numbers] * 9),
    projection=st.tuples(numbers, numbers),
)


@given(sketches)
def test_sketches_survive_text_bit_for_bit(sketch: Sketch):
    row = SketchRow(value_id=value(0).value_id, sketch=sketch)

    assert repr(decode(SketchRow, encode(row))) == repr(row)  # repr: NaN is not equal to itself


@pytest.mark.parametrize("row", [operator(0), value(3), key(1, skipped="why"), *SINGLE_ROWS], ids=repr)
def test_every_row_survives_text(row: Row):
    line = encode(row)

    assert decode(type(row), line) == row
    assert "\n" not in line and line.isascii()


def test_an_origin_survives_text():
    assert decode(Origin, encode(origin())) == origin()


@pytest.mark.parametrize(
    ("place", "rubbish"),
    [
        ("op_id", "1.0"),
        ("op_id", "true"),
        ("name", "null"),
        ("effect", '"explode"'),
        ("inputs", "{}"),
        ("inputs", '["1"]'),
        ("duration_s", '"fast"'),
        ("surprise", "1"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(place: str, rubbish: str):
    whole = encode(operator(0))
    inserted = whole[:-1] + f',"{place}":{rubbish}}}'

    with pytest.raises(CodecError):
        decode(Operator, inserted)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "[" * 100_000, b"\xff", '{"kind": "only"}'])
def test_text_that_is_no_row_is_refused(text: str | bytes):
    with pytest.raises(CodecError):
        decode(type(DOUBT), text)


def test_numpy_integers_do_not_slip_in():
    with pytest.raises(TypeError, match="int64"):
        encode((np.int64(1),))
