import errno
import io
import math
from pathlib import Path

import numpy as np
import pytest
from journal_rows import DOUBT, value

from magneton.errors import MagnetonError
from magneton.record.codec import decode
from magneton.record.journal import Journal, SketchRow, open_unbuffered
from magneton.record.sketching import sketch_array


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

    # The stub asks for any buffer; the journal writes these two.
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
