"""Decoded tables as a profile's rows. Indices and choices are checked here; what rows say to each other
is checked afterwards, by ``checks.check``."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from magneton.profile import schema
from magneton.profile.damage import damaged, quoted
from magneton.profile.model import (
    BlockReading,
    Conditions,
    Frame,
    IdlePower,
    Kernel,
    KeyId,
    Operator,
    OpId,
    PowerSample,
    ReplayKey,
    ReplayReading,
    ScopeTime,
    Stack,
    Value,
    ValueId,
)
from magneton.profile.schema import Kind, Table
from magneton.profile.sketches import Sketches
from magneton.profile.tables import SLOTS

RowT = TypeVar("RowT")

_SHAPE = re.compile(r"([0-9]{1,19}(,[0-9]{1,19}){0,63})?", re.ASCII)


class Rows:
    """One decoded table, its text looked up."""

    def __init__(
        self, table: Table, cells: Mapping[str, NDArray[Any] | list[Any]], texts: Sequence[str]
    ) -> None:
        self._table = table
        self._cells = cells
        self._texts = texts
        self.count = len(cells[table.columns[0].name])

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the file's version has."""
        return tuple(column.name for column in self._table.columns)

    def array(self, name: str) -> NDArray[Any]:
        """A column of numbers that has no gaps."""
        return np.asarray(self._cells[name])

    def cells(self, name: str) -> list[Any]:
        """Python values, None where there is none; text for a column of text."""
        column = next((column for column in self._table.columns if column.name == name), None)
        if column is None:  # of a later version than the file's
            return [None] * self.count
        found = self._cells[name]
        cells = found if isinstance(found, list) else found.tolist()
        return self._look_up(name, cells) if column.kind is Kind.TEXT else cells

    def parsed(self, name: str, parse: Callable[[str], RowT]) -> list[RowT]:
        """A column of text, each distinct string parsed once."""
        cells = self.cells(name)
        known = {text: parse(text) for text in set(cells)}
        return [known[text] for text in cells]

    def build(
        self, row_type: Callable[..., RowT], fields: Mapping[str, str] | None = None
    ) -> tuple[RowT, ...]:
        """Rows whose fields are the columns, of the same name unless ``fields`` (by column) says another."""
        names = self.names
        keywords = [(fields or {}).get(name, name) for name in names]
        return tuple(
            row_type(**dict(zip(keywords, row, strict=True)))
            for row in zip(*(self.cells(name) for name in names), strict=True)
        )

    def _look_up(self, name: str, indices: list[int | None]) -> list[str | None]:
        texts = self._texts
        for wrong in {i for i in set(indices) if i is not None and not 0 <= i < len(texts)}:
            raise damaged(f"{self._table.member}: {name} points to string {wrong} of {len(texts)}")
        return [None if i is None else texts[i] for i in indices]


def operators(rows: Rows, operands: Rows) -> tuple[Operator, ...]:
    slots = _operand_slots(operands, rows.count)
    columns = zip(*(rows.cells(name) for name in rows.names), strict=True)
    return tuple(
        Operator(
            op_id=OpId(op_id),
            inputs=inputs,
            outputs=outputs,
            mutated=mutated,
            **dict(zip(rows.names, row, strict=True)),
        )
        for op_id, (row, inputs, outputs, mutated) in enumerate(zip(columns, *slots, strict=True))
    )


def values(rows: Rows) -> tuple[Value, ...]:
    columns = zip(
        rows.cells("role"),
        rows.cells("name"),
        rows.parsed("shape", _shape),
        rows.cells("dtype"),
        rows.cells("producer"),
        rows.cells("storage_id"),
        rows.cells("version"),
        rows.cells("drift"),
        strict=True,
    )
    return tuple(
        Value(
            value_id=ValueId(value_id),
            role=role,
            name=name,
            shape=shape,
            dtype=dtype,
            producer=producer,
            storage_id=storage_id,
            version=version,
            drift=drift,
        )
        for value_id, (role, name, shape, dtype, producer, storage_id, version, drift) in enumerate(columns)
    )


def sketches(rows: Rows) -> Sketches:
    def together(names: Sequence[str]) -> NDArray[np.float64]:
        return np.stack([rows.array(name) for name in names], axis=1)

    return Sketches(
        known=rows.array("known"),
        count=rows.array("count"),
        pos_inf=rows.array("pos_inf"),
        neg_inf=rows.array("neg_inf"),
        nan=rows.array("nan"),
        huge=rows.array("huge"),
        distinct=rows.array("distinct"),
        rms=rows.array("rms"),
        first=rows.array("first"),
        cos_sum=together(schema.COS_SUMS),
        sin_sum=together(schema.SIN_SUMS),
        projection=together(schema.PROJECTIONS),
    )


def stacks(rows: Rows, count: int) -> tuple[Stack, ...]:
    """``count`` stacks, those without a row having no frames."""
    if count > schema.STACKS.max_rows:
        raise damaged(f"{count} stacks declared; at most {schema.STACKS.max_rows} are allowed")
    frames = [
        Frame(file=file, line=line, function=function, code=code)
        for file, line, function, code in zip(
            rows.cells("file"), rows.cells("line"), rows.cells("function"), rows.cells("code"), strict=True
        )
    ]
    grouped = _grouped(rows.array("stack_id"), frames, count, "stacks.parquet: stack_id")
    return tuple(Stack(frames=group) for group in grouped)


def keys(rows: Rows) -> tuple[ReplayKey, ...]:
    return tuple(
        ReplayKey(key_id=KeyId(key_id), skipped=skipped)
        for key_id, skipped in enumerate(rows.cells("skipped"))
    )


def kernels(rows: Rows) -> tuple[Kernel, ...]:
    return rows.build(Kernel)


def samples(rows: Rows) -> tuple[PowerSample, ...]:
    return rows.build(PowerSample)


def blocks(rows: Rows) -> tuple[BlockReading, ...]:
    return rows.build(BlockReading, {"pass": "pass_"})


def replays(rows: Rows) -> tuple[ReplayReading, ...]:
    return rows.build(ReplayReading)


def scopes(rows: Rows) -> tuple[ScopeTime, ...]:
    return rows.build(ScopeTime)


def conditions(rows: Rows) -> tuple[Conditions, ...]:
    return rows.build(Conditions)


def idle(rows: Rows) -> tuple[IdlePower, ...]:
    return rows.build(IdlePower)


def _operand_slots(operands: Rows, count: int) -> list[list[tuple[Any, ...]]]:
    """For each slot, the value ids of each of ``count`` operators."""
    found = np.array(operands.parsed("slot", _slot), dtype=np.int64)
    op_ids, value_ids = operands.array("op_id"), operands.array("value_id")
    where = "operands.parquet: op_id"
    return [
        _grouped(op_ids[found == i], value_ids[found == i].tolist(), count, where) for i in range(len(SLOTS))
    ]


def _grouped(owners: NDArray[Any], items: list[RowT], count: int, where: str) -> list[tuple[RowT, ...]]:
    """``items`` by owner 0, 1, ... ``count - 1``; rows of one owner lie together, owners ascend."""
    if owners.size and (owners[0] < 0 or owners[-1] >= count or bool((owners[1:] < owners[:-1]).any())):
        raise damaged(f"{where} is not ascending within 0 to {count - 1}")
    ends = np.searchsorted(owners, np.arange(count), side="right").tolist()
    return [tuple(items[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def _slot(text: str) -> int:
    if text not in SLOTS:
        raise damaged(f"operands.parquet: slot {quoted(text)}, not one of {', '.join(SLOTS)}")
    return SLOTS.index(text)


def _shape(text: str) -> tuple[int, ...]:
    if _SHAPE.fullmatch(text) is None:
        raise damaged(f"values.parquet: shape {quoted(text)} is no list of sizes")
    return tuple(int(size) for size in text.split(",") if size)
