import errno
import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_rows import DOUBT, SINGLE_ROWS, key, operator, origin, value

from magneton.errors import MagnetonError
from magneton.profile.model import Operator
from magneton.profile.origin import Origin
from magneton.profile.sketches import Sketch
from magneton.record.codec import CodecError, decode, encode
from magneton.record.journal import Journal, Row, SketchRow, open_unbuffered
from magneton.record.sketching import sketch_array

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


def test_rows_are_on_disk_before_the_journal_is_closed(tmp_path: Path):
    journal = Journal(tmp_path / "side")
    journal.append(value(0))
    journal.append_sketch(value(0).value_id, sketch_array(np.arange(3.0)))

    assert (tmp_path / "side" / "values.jsonl").read_bytes().endswith(b"\n")
    row = decode(SketchRow, (tmp_path / "side" / "sketches.jsonl").read_text())
    assert row.sketch is not None and math.isclose(row.sketch.rms, math.sqrt(5 / 3))
    journal.close()


def test_outputs_named_like_paths_stay_inside(tmp_path: Path):
    with Journal(tmp_path / "side") as journal:
        journal.save_output("../../evil", np.zeros(2))

    assert [path.name for path in tmp_path.iterdir()] == ["side"]
    assert len(list((tmp_path / "side" / "outputs").iterdir())) == 1


def test_objects_are_no_outputs(tmp_path: Path):
    with Journal(tmp_path) as journal, pytest.raises(ValueError, match="allow_pickle"):
        journal.save_output("thing", np.array([object()]))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_says_what_to_do(tmp_path: Path):
    with Journal(tmp_path, opener=lambda path: open_unbuffered(Path("/dev/full"))) as journal:
        with pytest.raises(MagnetonError, match="No space left") as raised:
            journal.append(DOUBT)
        assert "MAGNETON_CACHE" in raised.value.hint


class HalfFullDisk(io.RawIOBase):
    """Takes five bytes at a time, then nothing, as a disk that fills up in the middle of a line."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.content = b""

    def write(self, b: bytes | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        taken = bytes(b)[: min(5, self.room)]
        if not taken:
            raise OSError(errno.ENOSPC, "full")
        self.room -= len(taken)
        self.content += taken
        return len(taken)


def test_a_line_taken_in_pieces_arrives_whole(tmp_path: Path):
    disk = HalfFullDisk(room=1000)
    with Journal(tmp_path, opener=lambda path: disk) as journal:
        journal.append(DOUBT)

    assert decode(type(DOUBT), disk.content) == DOUBT


def test_a_disk_that_fills_up_within_a_line_is_noticed(tmp_path: Path):
    disk = HalfFullDisk(room=12)
    with Journal(tmp_path, opener=lambda path: disk) as journal, pytest.raises(MagnetonError):
        journal.append(DOUBT)
