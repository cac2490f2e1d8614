"""A profile's rows as columns, ready for ``parquet.encode_table``. ``rows`` is the way back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from magneton.profile import schema
from magneton.profile.model import Frame, Operator, Profile, Stack, Value
from magneton.profile.parquet import Cells
from magneton.profile.schema import Table
from magneton.profile.sketches import Sketches
from magneton.profile.texts import TextPool

SLOTS = ("inputs", "outputs", "mutated")  # the fields of an operator that the table operands holds


def table_cells(profile: Profile, pool: TextPool) -> Mapping[Table, Mapping[str, Cells]]:
    """The cells of every table; text goes into ``pool``, its index into the cell."""
    return {
        schema.OPERATORS: _operators(profile.operators, pool),
        schema.OPERANDS: _operands(profile.operators, pool),
        schema.VALUES: _values(profile.values, pool) | _sketches(profile.sketches),
        schema.STACKS: _stacks(profile.stacks, pool),
        schema.KEYS: {"skipped": pool.add_optional(key.skipped for key in profile.keys)},
        schema.KERNELS: _plain(profile.kernels, schema.KERNELS, pool),
        schema.SAMPLES: _plain(profile.samples, schema.SAMPLES, pool),
        schema.BLOCKS: _plain(profile.blocks, schema.BLOCKS, pool, {"pass": "pass_"}),
        schema.REPLAYS: _plain(profile.replays, schema.REPLAYS, pool),
        schema.SCOPES: _plain(profile.scopes, schema.SCOPES, pool),
        schema.CONDITIONS: _plain(profile.conditions, schema.CONDITIONS, pool),
        schema.IDLE: _plain(profile.idle, schema.IDLE, pool),
    }


def shape_text(shape: Iterable[int]) -> str:
    """``(2, 3)`` as ``2,3``; a scalar's shape is empty."""
    return ",".join(str(int(size)) for size in shape)


def _plain(
    rows: Sequence[Any], table: Table, pool: TextPool, fields: Mapping[str, str] | None = None
) -> dict[str, Cells]:
    """Columns that are fields of ``rows``, of the same name unless ``fields`` says another."""
    cells: dict[str, Cells] = {}
    for column in table.columns:
        field = (fields or {}).get(column.name, column.name)
        found = [getattr(row, field) for row in rows]
        cells[column.name] = pool.add(found) if column.kind is schema.Kind.TEXT else found
    return cells


def _operators(operators: Sequence[Operator], pool: TextPool) -> dict[str, Cells]:
    return _plain(operators, schema.OPERATORS, pool)


def _operands(operators: Sequence[Operator], pool: TextPool) -> dict[str, Cells]:
    op_ids: list[int] = []
    slots: list[str] = []
    value_ids: list[int] = []
    for op in operators:
        for slot in SLOTS:
            ids = getattr(op, slot)
            op_ids += [op.op_id] * len(ids)
            slots += [slot] * len(ids)
            value_ids += ids
    return {"op_id": op_ids, "slot": pool.add(slots), "value_id": value_ids}


def _values(values: Sequence[Value], pool: TextPool) -> dict[str, Cells]:
    return {
        "role": pool.add(value.role for value in values),
        "name": pool.add(value.name for value in values),
        "shape": pool.add(shape_text(value.shape) for value in values),
        "dtype": pool.add(value.dtype for value in values),
        "producer": [value.producer for value in values],
        "storage_id": [value.storage_id for value in values],
        "version": [value.version for value in values],
        "drift": [value.drift for value in values],
    }


def _sketches(sketches: Sketches) -> dict[str, Cells]:
    cells: dict[str, Cells] = {
        name: getattr(sketches, name) for name in ("known", *schema.SKETCH_COUNTS, "distinct", "rms", "first")
    }
    for names, sums in (
        (schema.COS_SUMS, sketches.cos_sum),
        (schema.SIN_SUMS, sketches.sin_sum),
        (schema.PROJECTIONS, sketches.projection),
    ):
        cells |= {name: sums[:, i] for i, name in enumerate(names)}
    return cells


def _stacks(stacks: Sequence[Stack], pool: TextPool) -> dict[str, Cells]:
    frames: list[Frame] = [frame for stack in stacks for frame in stack.frames]
    return {
        "stack_id": [stack_id for stack_id, stack in enumerate(stacks) for _ in stack.frames],
        "file": pool.add(frame.file for frame in frames),
        "line": [frame.line for frame in frames],
        "function": pool.add(frame.function for frame in frames),
        "code": pool.add(frame.code for frame in frames),
    }
