"""Results that nobody uses, or of which only a small part is used."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from magneton.audit.model import Sighting
from magneton.audit.pieces import connected, shows_all, trains
from magneton.audit.step import Step
from magneton.profile.model import Operator
from magneton.workload import DECODE, PREFILL

HOST_READ = 1024  # whole numbers up to that many may be read on the host, which no operator shows
MOST_USED = 0.5  # a result of which more is used is no waste

_DIM = re.compile(r'"dim": ?(-?[0-9]{1,9})[,}]')
_ROW_WISE = ("aten.mm.", "aten.addmm.", "aten.linear.")
_POINTWISE = (
    "aten._to_copy.",
    "aten.relu.",
    "aten.gelu.",
    "aten.silu.",
    "aten.tanh.",
    "aten.sigmoid.",
    "aten.mul.Scalar",
    "aten.div.Scalar",
)
_TAKES_ROWS = ("aten.index.", "aten.index_select.")


def dead_results(step: Step) -> Iterator[Sighting]:
    """Whole chains: what only dead operators read is dead.

    What is kept for later is no operand of a recorded operator: with a prefill alone, a cache is not told
    from waste, nor are gradients anywhere; there nothing is claimed. Nor is it of a line that is of use
    at another time (the last step's state).
    """
    if not _leaves_known(step):
        return
    alive = _alive(step)
    of_use = {_line(step.operators[at]) for at in alive}
    dead = [
        at
        for at, op in enumerate(step.operators)
        if op.effect == "compute" and at not in alive and _line(op) not in of_use
    ]
    for chain in connected(step, dead):
        names = step.names(chain)
        yield Sighting(
            pattern="dead result",
            operators=tuple(step.op_id(at) for at in chain),
            evidence=f"nothing reads the result of {len(chain)} operator{'s' * (len(chain) > 1)} ({names}), "
            "and it is none of the outputs",
            change="do not compute it, or only where it is asked for",
        )


def _leaves_known(step: Step) -> bool:
    phases = step.profile.origin.workload.phases
    if not any(name.partition(".")[0] == step.phase for name in step.profile.outputs):
        return False
    if step.phase == PREFILL and DECODE not in phases:
        return False
    return not trains(step)


def _line(op: Operator) -> tuple[str, str, int]:
    return op.name, op.module_path, op.stack_id


def _alive(step: Step) -> set[int]:
    """Positions of computing operators whose results are used; by storages, so that views count."""
    alive: set[int] = set()
    wanted = _read_elsewhere(step)
    for at in range(len(step.operators) - 1, -1, -1):
        op = step.operators[at]
        written = step.storages(step.wiring.outputs[at])
        if any(_may_leave(step, value) for value in step.wiring.outputs[at]):
            wanted |= written
        if op.effect == "view":
            continue
        hidden = op.effect == "compute" and not shows_all(step, at)
        if op.effect in ("sync", "random") or hidden or written & (wanted | step.old_storages):
            alive.add(at)
            wanted |= step.storages(op.inputs)
    return alive


def _read_elsewhere(step: Step) -> set[int]:
    elsewhere = (op for op in step.profile.operators if op.phase != step.phase)
    return step.storages(value for op in elsewhere for value in op.inputs)


def _may_leave(step: Step, value: int) -> bool:
    """An output of several steps is kept as one array, stacked."""
    kept = step.value(value)
    elements = step.elements(value)
    if not kept.dtype.startswith(("float", "bfloat", "complex")) and elements <= HOST_READ:
        return True
    sizes: set[int] = set()
    for name, array in step.profile.outputs.items():
        if name.partition(".")[0] == step.phase:
            sizes |= {array.size, array.size // max(array.shape[0], 1) if array.ndim else 1}
    return value in step.declared or elements in sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Narrowed:
    """A row-wise chain, and the part of its result that is read."""

    positions: tuple[int, ...]
    elements: int
    used: int


def mostly_unused_results(step: Step) -> Iterator[Sighting]:
    """Rows of a matrix product do not depend on each other: those that are used could be taken before it."""
    told: set[int] = set()
    for at, op in enumerate(step.operators):
        if at in told or not op.name.startswith(_ROW_WISE):
            continue
        narrowed = _narrowed(step, at)
        if narrowed is None or narrowed.used > MOST_USED * narrowed.elements:
            continue
        told |= set(narrowed.positions)
        yield Sighting(
            pattern="mostly unused result",
            operators=tuple(step.op_id(position) for position in narrowed.positions),
            evidence=f"of {narrowed.elements} elements that {op.name} computes, {narrowed.used} are read",
            change="take the rows that are used before this operator, not after it",
            avoidable=1 - narrowed.used / narrowed.elements,
        )


def _narrowed(step: Step, start: int) -> _Narrowed | None:
    """Follows a result through what works row by row, up to where all that read it take rows."""
    positions = [start]
    value = step.wiring.outputs[start][0] if len(step.wiring.outputs[start]) == 1 else None
    while value is not None:
        readers = step.consumers(value)
        taken = [_rows_taken(step, value, at) for at in readers]
        if taken and all(part is not None for part in taken):
            used = sum(part for part in taken if part is not None)
            return _Narrowed(positions=tuple(positions), elements=step.elements(value), used=used)
        if len(readers) != 1 or value in step.declared:
            return None
        value = _handed_on(step, value, readers[0], positions)
    return None


def _handed_on(step: Step, value: int, reader: int, positions: list[int]) -> int | None:
    op, written = step.operators[reader], step.wiring.outputs[reader]
    if len(written) != 1 or op.mutated:
        return None
    before, after = step.value(value), step.value(written[0])
    if op.effect == "view":
        same_rows = (
            step.elements(value) == step.elements(written[0]) and before.shape[-1:] == after.shape[-1:]
        )
        return (
            written[0] if same_rows and op.name.split(".")[1] not in ("transpose", "permute", "t") else None
        )
    pointwise = op.name.startswith(_POINTWISE) and before.shape == after.shape
    if pointwise or _multiplies_rows(step, value, reader):
        positions.append(reader)
        return written[0]
    return None


def _multiplies_rows(step: Step, value: int, reader: int) -> bool:
    read = step.wiring.inputs[reader]
    place = 1 if step.operators[reader].name.startswith("aten.addmm.") else 0
    return (
        step.operators[reader].name.startswith(_ROW_WISE)
        and read.count(value) == 1
        and read.index(value) == place
    )


def _rows_taken(step: Step, value: int, reader: int) -> int | None:
    """How many elements a reader takes, if it takes whole rows and nothing else; None for other readers."""
    op, shape = step.operators[reader], step.value(value).shape
    takes = op.effect == "view" or op.name.startswith(_TAKES_ROWS)
    if not takes or op.mutated or step.wiring.inputs[reader][0] != value or len(shape) < 2:
        return None
    dim = _dim(op.attributes)
    if dim is not None and dim % len(shape) == len(shape) - 1:
        return None
    used = 0
    for part in step.wiring.outputs[reader]:
        if step.value(part).shape[-1:] != shape[-1:] or step.elements(part) >= step.elements(value):
            return None
        used += step.elements(part)
    return used or None


def _dim(attributes: str) -> int | None:
    found = _DIM.search(attributes)
    return int(found[1]) if found else None
