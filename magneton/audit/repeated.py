"""The same computation on the same values, more than once in a step."""

from collections import defaultdict
from collections.abc import Iterator

from magneton.audit.model import Sighting
from magneton.audit.pieces import connected, shows_all
from magneton.audit.step import Step


def repeated_computation(step: Step) -> Iterator[Sighting]:
    """Numbers values by how they came about; what has the number of an earlier one is computed again.

    A sketch does not tell the order of what it saw, so it can only speak against two values, never for them.
    """
    number, of_operator = _numbered(step)
    firsts = _firsts(step, of_operator)
    again = [at for at, first in firsts.items() if first != at]
    repeated = connected(step, again, key=lambda value: number[value])
    for piece in repeated:
        if not any(step.wiring.inputs[at] for at in piece):
            continue  # new memory with equal content, and nothing made of it
        origins = {firsts[at] for at in piece}
        runs = 1 + max(sum(firsts[at] == first for at in piece) for first in origins)
        names = step.names(sorted(origins))
        yield Sighting(
            pattern="repeated computation",
            operators=tuple(step.op_id(at) for at in piece),
            evidence=f"{names} on the same values, {runs} times in a step; once would do",
            change="compute it once, and hand the result on",
        )


def _numbered(step: Step) -> tuple[dict[int, int], dict[int, int]]:
    """Equal numbers of values: computed in the same way from the same; of computing operators likewise."""
    known: dict[object, int] = {}
    number: dict[int, int] = {}
    of_operator: dict[int, int] = {}
    for at, op in enumerate(step.operators):
        read = step.wiring.inputs[at]
        for value in read:
            number.setdefault(value, known.setdefault(("source", value), len(known)))
        repeatable = op.effect == "view" or shows_all(step, at)
        operands = tuple(number[value] for value in read)
        made_of = (op.name, op.attributes, operands, len(step.wiring.outputs[at]))
        way = made_of if repeatable else ("at", at)
        if repeatable and op.effect == "compute":
            of_operator[at] = known.setdefault(way, len(known))
        for place, value in enumerate(step.wiring.outputs[at]):
            kept = step.value(value)
            made = (way, place, kept.shape, kept.dtype)
            number[value] = known.setdefault(made, len(known))
    return number, of_operator


def _firsts(step: Step, of_operator: dict[int, int]) -> dict[int, int]:
    """Position -> that of the first execution, of all that may stand for each other.

    Memory that something else writes later belongs to one execution alone: it cannot be shared.
    """
    writers: dict[int, set[int]] = defaultdict(set)
    for at, written in enumerate(step.wiring.outputs):
        if step.operators[at].effect != "view":
            for storage in step.storages(written):
                writers[storage].add(at)
    candidates = set(of_operator)
    while True:
        runs: dict[int, list[int]] = defaultdict(list)
        for at in sorted(candidates):
            runs[of_operator[at]].append(at)
        kept = {
            at
            for alike in runs.values()
            if len(alike) > 1 and all(_same(step, alike[0], other) for other in alike)
            for at in alike
            if _own(step, at, writers, candidates)
        }
        if kept == candidates:
            return {at: alike[0] for alike in runs.values() for at in alike}
        candidates = kept


def _own(step: Step, at: int, writers: dict[int, set[int]], candidates: set[int]) -> bool:
    storages = step.storages(step.wiring.outputs[at])
    return (
        bool(storages)
        and not storages & step.old_storages
        and all(writers[one] <= candidates for one in storages)
    )


def _same(step: Step, one: int, other: int) -> bool:
    """Unless sketches say otherwise (an operator that reads what no argument shows)."""
    known = step.profile.sketches.known
    return all(
        step.equal(a, b) or not (known[a] and known[b])
        for a, b in zip(step.wiring.outputs[one], step.wiring.outputs[other], strict=True)
    )
