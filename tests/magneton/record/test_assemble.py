from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from journal_rows import (
    BLOCK,
    DOUBT,
    KERNEL,
    REPLAY,
    SAMPLE,
    SCOPE,
    SINGLE_ROWS,
    STACK,
    key,
    operator,
    origin,
    value,
)

from magneton.errors import InvalidProfile
from magneton.record.assemble import read_journal
from magneton.record.journal import Journal, Rejected
from magneton.record.sketching import sketch_array


def write(folder: Path) -> Journal:
    """A journal with everything in it once."""
    with Journal(folder) as journal:
        journal.write_origin(origin())
        for row in (value(0), value(1), operator(0, value=0), operator(1, value=1), key(0), *SINGLE_ROWS):
            journal.append(row)
        journal.append_sketch(value(1).value_id, sketch_array(np.arange(4.0)))
        journal.save_output("call.result/0", np.arange(6, dtype=np.int32).reshape(2, 3))
    return journal


def test_what_was_written_is_read(tmp_path: Path):
    write(tmp_path)

    profile = read_journal(tmp_path)

    assert profile.origin == origin()
    assert profile.values == (value(0), value(1))
    assert profile.operators == (operator(0, value=0), operator(1, value=1))
    assert profile.keys == (key(0),)
    assert (profile.stacks, profile.kernels, profile.samples) == ((STACK,), (KERNEL,), (SAMPLE,))
    assert (profile.blocks, profile.replays, profile.doubts) == ((BLOCK,), (REPLAY,), (DOUBT,))
    assert profile.scopes == (SCOPE,)
    assert profile.sketches.known.tolist() == [False, True]
    assert profile.outputs["call.result/0"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_durations_of_several_blocks_become_their_median(tmp_path: Path):
    write(tmp_path)
    with Journal(tmp_path) as journal:
        for duration_s in (1.0, 9.0, 2.0):
            journal.append_duration(operator(1).op_id, duration_s)

    first, second = read_journal(tmp_path).operators

    assert (first.duration_s, second.duration_s) == (None, 2.0)


def test_a_key_found_unreplayable_later_is_so(tmp_path: Path):
    write(tmp_path)
    with Journal(tmp_path) as journal:
        journal.append(key(0, skipped="reads and writes its argument"))

    assert read_journal(tmp_path).keys == (key(0, skipped="reads and writes its argument"),)


def test_one_doubt_is_told_once(tmp_path: Path):
    write(tmp_path)
    with Journal(tmp_path) as journal:
        journal.append(DOUBT)

    assert read_journal(tmp_path).doubts == (DOUBT,)


def test_passes_that_never_ran_leave_empty_tables(tmp_path: Path):
    with Journal(tmp_path) as journal:
        journal.write_origin(origin())

    profile = read_journal(tmp_path)

    assert (profile.operators, profile.blocks, profile.replays, dict(profile.outputs)) == ((), (), (), {})


def test_any_last_line_may_be_half_a_line(tmp_path: Path):
    write(tmp_path)
    blocks = tmp_path / "blocks.jsonl"
    whole = blocks.read_bytes()
    for cut in range(len(whole)):
        blocks.write_bytes(whole + whole[:cut])

        assert read_journal(tmp_path).blocks == (BLOCK,)


def garbled_line(folder: Path) -> None:
    path = folder / "blocks.jsonl"
    path.write_bytes(b'{"half": ' + b"\n" + path.read_bytes())


def missing_row(folder: Path) -> None:
    path = folder / "values.jsonl"
    path.write_bytes(path.read_bytes().split(b"\n")[1] + b"\n")


def missing_origin(folder: Path) -> None:
    (folder / "origin.json").unlink()


def garbled_origin(folder: Path) -> None:
    (folder / "origin.json").write_text("{}")


def pickled_output(folder: Path) -> None:
    np.save(folder / "outputs" / "x.npy", np.array([{}]), allow_pickle=True)


def cut_output(folder: Path) -> None:
    (path,) = (folder / "outputs").iterdir()
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (garbled_line, "blocks.jsonl is damaged"),
        (missing_row, "values .* lack row 0"),
        (missing_origin, "holds no recording"),
        (garbled_origin, "origin.json is damaged"),
        (pickled_output, "x.npy is damaged"),
        (cut_output, "is damaged"),
    ],
)
def test_damage_that_no_kill_explains_is_named(tmp_path: Path, damage: Callable[[Path], None], text: str):
    write(tmp_path)
    damage(tmp_path)

    with pytest.raises(InvalidProfile, match=text):
        read_journal(tmp_path)


def test_rejected_windows_become_one_doubt_per_kind_with_counts(tmp_path: Path):
    write(tmp_path)
    with Journal(tmp_path) as journal:
        for why in ("hot", "a foreign process", "hot"):
            journal.append(Rejected(kind="block", phase="decode", why=why))
        journal.append(Rejected(kind="replay", phase="{}", why="hot"))
        for number in range(5):
            journal.append(Rejected(kind="idle", phase="", why=f"reset by {number} J"))

    doubts = {doubt.kind: doubt.text for doubt in read_journal(tmp_path).doubts if doubt != DOUBT}
    assert doubts == {
        "block-rejected": "3 blocks of decode were rejected: hot (2); a foreign process (1)",
        "replay-rejected": "1 window over operators of {} was rejected: hot",
        "idle-rejected": "5 windows at rest were rejected: "
        "reset by 0 J (1); reset by 1 J (1); reset by 2 J (1); 2 more reasons",
    }
