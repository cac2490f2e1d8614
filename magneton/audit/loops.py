"""One operator called for each item of a tensor, where one call could do all of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from magneton.audit.model import Sighting
from magneton.audit.step import Step
from magneton.workload import DECODE

FEWEST = 8


def per_item_loops(step: Step) -> Iterator[Sighting]:
    """Of one line in one module, on equal parts of one tensor; none of them may need another's result."""
    base = _bases(step)
    lines: dict[tuple[str, str, int, str], list[int]] = defaultdict(list)
    for at, op in enumerate(step.operators):
        if op.effect == "compute" and not op.mutated:
            lines[op.name, op.module_path, op.stack_id, op.attributes].append(at)
    for calls in lines.values():
        if len(calls) < FEWEST:
            continue
        whole = _shared_base(step, calls, base)
        if whole is None or not _independent(step, calls):
            continue
        name, shape = step.operators[calls[0]].name, step.value(whole).shape
        yield Sighting(
            pattern="per-item loop",
            operators=tuple(step.op_id(at) for at in calls),
            evidence=f"{len(calls)} calls of {name} on one line, each on a part of one tensor {list(shape)}",
            change="call it once on the whole tensor, with the items as a batch",
            avoidable=None,
        )


def _bases(step: Step) -> dict[int, int]:
    """Value -> the tensor that it is a part of, or was computed from a part of."""
    base: dict[int, int] = {}
    root: dict[int, int] = {}  # through views
    for at, op in enumerate(step.operators):
        read = step.wiring.inputs[at]
        parts = {base[value] for value in read if value in base}
        for value in step.wiring.outputs[at]:
            if op.effect == "view" and len(read) == 1:
                root[value] = root.get(read[0], read[0])
                if not parts and step.elements(value) < step.elements(read[0]):
                    base[value] = root[value]
            if len(parts) == 1:
                base[value] = next(iter(parts))
    return base


def _shared_base(step: Step, calls: Sequence[int], base: Mapping[int, int]) -> int | None:
    """The one tensor whose parts all calls take, beside operands that are the same for all of them."""
    reads = [step.wiring.inputs[at] for at in calls]
    shapes = {tuple(step.value(value).shape for value in read) for read in reads}
    if len(shapes) != 1 or len(set(reads)) != len(reads):
        return None
    bases: set[int | None] = set()
    for operands in zip(*reads, strict=True):
        if len({_source(step, value) for value in operands}) > 1:
            bases |= {base.get(value) for value in operands}
    if len(bases) != 1:
        return None
    (whole,) = bases
    if whole is None or (step.phase == DECODE and step.value(whole).role == "input"):
        return None
    return whole


def _source(step: Step, value: int) -> tuple[object, ...]:
    """Equal for values that the same views make of the same value: a weight that is transposed each time."""
    views: list[object] = []
    at = step.producer(value)
    while at is not None and step.operators[at].effect == "view" and len(step.wiring.inputs[at]) == 1:
        views += [step.operators[at].name, step.operators[at].attributes]
        views.append(step.wiring.outputs[at].index(value))
        (value,) = step.wiring.inputs[at]
        earlier = step.producer(value)
        at = earlier if earlier is not None and earlier < at else None
    return value, *views


def _independent(step: Step, calls: Sequence[int]) -> bool:
    """No call reads, by whatever way, what another has written."""
    chosen, written = set(calls), set[int]()
    for at in range(calls[0], calls[-1] + 1):
        reads = bool(written & step.storages(step.wiring.inputs[at]))
        if at in chosen and reads:
            return False
        if at in chosen or reads:
            written |= step.storages(step.wiring.outputs[at])
    return True
