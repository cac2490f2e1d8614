"""Tables whose cells point nowhere: each is refused in one line that names the table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from archives import members_of, packed, parquet_bytes, refusal, table_of, with_column
from profiles import a_value, an_operator, small_profile

from magneton.profile.model import Frame, Stack
from magneton.profile.store import load, save
from magneton.profile.tables import shape_text


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    return members_of(small_profile(), tmp_path)


WRONG_CELLS: list[tuple[str, str, Sequence[Any], Any, str]] = [
    ("operators", "name", [0, 1, 99], pa.int32(), "name points to string 99 of"),
    ("operators", "effect", [0, -1, 1], pa.int32(), "effect points to string -1 of"),
    ("operators", "effect", [0, 0, 0], pa.int32(), "has the effect 'prefill'"),
    ("operators", "phase", [1, 1, 1], pa.int32(), "belongs to the phase 'aten.relu.default'"),
    ("operators", "stack_id", [0, 0, 1], pa.int64(), "operator 2 refers to stack 1 of 1"),
    ("operators", "key_id", [0, 0, -1], pa.int64(), "operator 2 refers to key -1 of 3"),
    ("operators", "flops", [0, -5, 0], pa.int64(), "operator 1 has the flops -5"),
    ("operators", "duration_s", [0.1, -0.5, 0.1], pa.float64(), "operator 1 has the duration_s -0.5"),
    ("operators", "duration_s", [0.1, float("nan"), 0.1], pa.float64(), "operator 1 has the duration_s nan"),
    ("operands", "op_id", [0, 0, 1, 1, 2, 3], pa.int64(), "op_id is not ascending within 0 to 2"),
    ("operands", "op_id", [-1, 0, 1, 1, 2, 2], pa.int64(), "op_id is not ascending within 0 to 2"),
    ("operands", "op_id", [1, 1, 0, 0, 2, 2], pa.int64(), "op_id is not ascending within 0 to 2"),
    ("operands", "op_id", [0, 0, 2**63 - 1, 2**63 - 1, -2, 2], pa.int64(), "op_id is not ascending"),
    ("operands", "value_id", [0, 1, 1, 2, 4, 3], pa.int64(), "operator 2 refers to value 4 of 4"),
    ("operands", "value_id", [0, 1, 1, 2, -1, 3], pa.int64(), "operator 2 refers to value -1 of 4"),
    ("operands", "slot", [0, 0, 0, 0, 0, 0], pa.int32(), "slot 'prefill', not one of"),
    ("values", "producer", [None, 0, 1, 7], pa.int64(), "value 3 comes from operator 7 of 3"),
    ("values", "producer", [None, 0, 1, -1], pa.int64(), "value 3 comes from operator -1 of 3"),
    ("values", "producer", [2, 0, 1, 2], pa.int64(), "value 0 comes from operator 2, which has no such"),
    ("values", "shape", [0, 0, 0, 0], pa.int32(), "shape 'prefill' is no list of sizes"),
    ("values", "rms", [1.0, 1.0, float("inf"), 1.0], pa.float64(), "rms that is not finite"),
    ("values", "cos_3", [1.0, 1.0, float("nan"), 1.0], pa.float64(), "cos_sum that is not finite"),
    ("values", "count", [8, 8, -8, 8], pa.int64(), "negative count"),
    ("stacks", "stack_id", [1], pa.int64(), "stack_id is not ascending within 0 to 0"),
    ("stacks", "line", [-7], pa.int64(), "stack 0 has the line -7"),
    ("keys", "skipped", [None, None, 1000], pa.int32(), "skipped points to string 1000"),
    ("kernels", "op_id", [0, None, 3], pa.int64(), "kernel 2 refers to operator 3 of 3"),
    ("replays", "key_id", [0, 1, 3] * 3, pa.int64(), "replay 2 refers to key 3 of 3"),
    ("replays", "executions", [1, 0, 1] * 3, pa.int64(), "replay 1 has the executions 0"),
    ("blocks", "steps", [1, 1, 0, 1, 1, 1], pa.int64(), "block 2 has the steps 0"),
    ("blocks", "energy_j", [1, -1e-9, 1, 1, 1, 1], pa.float64(), "block 1 has the energy_j -1e-09"),
    ("blocks", "pass", [0] * 6, pa.int32(), "block 0 belongs to the pass 'prefill'"),
]


@pytest.mark.parametrize(
    ("table", "column", "cells", "kind", "message"), WRONG_CELLS, ids=[f"{t}-{c}" for t, c, *_ in WRONG_CELLS]
)
def test_dangling_and_absurd_cells_are_refused(
    table: str,
    column: str,
    cells: Sequence[Any],
    kind: Any,
    message: str,
    members: dict[str, bytes],
    tmp_path: Path,
) -> None:
    changed = with_column(table_of(members, table), column, pa.array(cells, kind))
    assert message in refusal(packed({**members, f"{table}.parquet": parquet_bytes(changed)}), tmp_path)


@pytest.mark.parametrize(
    "shape", ["1,", ",1", "-1", "1.5", "1 ,2", "1;2", "٣", "1" * 20, "9" * 19, ",".join("1" * 65)]
)
def test_what_is_no_shape_is_refused(shape: str, members: dict[str, bytes], tmp_path: Path) -> None:
    strings = members["strings.jsonl"].replace(b'"2,4"', f'"{shape}"'.encode())
    assert "shape" in refusal(packed({**members, "strings.jsonl": strings}), tmp_path)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (7,) * 16, (0, 2**62)])
def test_shapes_round_trip(shape: tuple[int, ...], tmp_path: Path) -> None:
    profile = replace(
        small_profile(), values=tuple(replace(value, shape=shape) for value in small_profile().values)
    )
    save(profile, tmp_path / "shapes.mgn")
    assert load(tmp_path / "shapes.mgn").values == profile.values
    assert shape_text(shape).count(",") == max(len(shape) - 1, 0)


def test_operands_keep_their_order_and_repetitions(tmp_path: Path) -> None:
    base = small_profile()
    add = an_operator(0, inputs=(1, 0, 1), outputs=(3, 2), mutated=(2,))
    values = (a_value(0), a_value(1), a_value(2, producer=0), a_value(3, producer=0))
    profile = replace(base, operators=(add,), values=values, kernels=())
    save(profile, tmp_path / "order.mgn")
    assert load(tmp_path / "order.mgn").operators == (add,)


def test_stacks_without_frames_keep_their_place(tmp_path: Path) -> None:
    frame = Frame(file="a.py", line=1, function="f", code="x")
    stacks = (Stack(frames=()), Stack(frames=(frame, frame)), Stack(frames=()), Stack(frames=()))
    save(small_profile(stacks=stacks), tmp_path / "stacks.mgn")
    assert load(tmp_path / "stacks.mgn").stacks == stacks
