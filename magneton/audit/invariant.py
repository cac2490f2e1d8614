"""Work that has the same result in every step: it depends on nothing that a step brings."""

from collections.abc import Iterator, Sequence

from magneton.audit.model import Sighting
from magneton.audit.pieces import connected, shows_all, trains
from magneton.audit.step import Step
from magneton.match.distance import FEWEST_DISTINCT
from magneton.profile.model import Value


def loop_invariant_work(step: Step) -> Iterator[Sighting]:
    """Tables as long as an input are made anew because the next input may be longer: only those that
    grow with its square (masks) are worth keeping for the longest."""
    if trains(step):
        return
    fixed = _fixed(step)
    for piece in connected(step, _hoistable(step, fixed)):
        if not any(step.wiring.inputs[at] for at in piece):
            continue  # new memory, and nothing made of it
        of = sorted(_sources(step, piece))
        more = f" and {len(of) - 3} more" if len(of) > 3 else ""
        sources = f"only on {', '.join(of[:3])}{more}" if of else "on constants only"
        yield Sighting(
            pattern="loop-invariant work",
            operators=tuple(step.op_id(at) for at in piece),
            evidence=f"{len(piece)} operator{'s' * (len(piece) > 1)} ({step.names(piece)}) depend {sources}: "
            "the result is the same in every step",
            change="compute it once when the model is loaded, and keep the result",
        )


def _sources(step: Step, piece: Sequence[int]) -> set[str]:
    """Names of what existed before the step, seen through views."""
    names: set[str] = set()
    pending = [(at, value) for at in piece for value in step.wiring.inputs[at]]
    while pending:
        at, value = pending.pop()
        maker = step.producer(value)
        if maker is None:
            names.add(step.value(value).name)
        elif maker < at and step.operators[maker].effect == "view":
            pending += [(maker, operand) for operand in step.wiring.inputs[maker]]
    return names - {""}


def _fixed(step: Step) -> set[int]:
    """Values that no step changes."""
    changed = _written_storages(step)
    sizes = _brought_sizes(step, changed)
    varying = _varying_factories(step)
    fixed: set[int] = set()
    tied: set[int] = set()  # as long as an input
    for at, op in enumerate(step.operators):
        read, written = step.wiring.inputs[at], step.wiring.outputs[at]
        fixed.update(
            v for v in read if step.producer(v) is None and _lasting(step, step.value(v), op.name, changed)
        )
        if op.effect not in ("compute", "view", "alloc") or not all(v in fixed for v in read):
            continue
        shapes = [step.value(v).shape for v in written]
        if any(v in tied for v in read) or (not read and any(sizes & set(shape) for shape in shapes)):
            tied.update(written)
        if not (at in varying or op.effect == "alloc"):
            fixed.update(written)
    return {value for value in fixed if value not in tied or _is_mask(step, value, sizes)}


def _lasting(step: Step, value: Value, reader: str, changed: set[int]) -> bool:
    """Constants that hold whole numbers or one row may be what an engine prepared for this step."""
    if value.storage_id in changed or reader.startswith("aten.lift_fresh"):
        return False
    if value.role == "constant":
        return value.producer is None and value.dtype.startswith(("float", "bfloat")) and len(value.shape) > 1
    return value.role in ("parameter", "buffer")


def _hoistable(step: Step, fixed: set[int]) -> Iterator[int]:
    """Computing operators with fixed results, in memory that only such operators write."""
    computing = [
        at
        for at in range(len(step.operators))
        if shows_all(step, at) and set(step.wiring.outputs[at]) <= fixed
    ]
    chosen = set(computing)
    spoilt = {
        step.value(value).storage_id
        for at, written in enumerate(step.wiring.outputs)
        if step.operators[at].effect != "view" and at not in chosen
        for value in written
    }
    return (at for at in computing if not spoilt & step.storages(step.wiring.outputs[at]))


def _written_storages(step: Step) -> set[int]:
    values = step.profile.values
    return {values[value].storage_id for op in step.profile.operators for value in op.mutated}


def _brought_sizes(step: Step, changed: set[int]) -> set[int]:
    """Of what existed before the step and may be another tensor in the next.

    The last dimension of real numbers that is also one of a weight counts features: it stays.
    """
    lengths, features, of_weights = set[int](), set[int](), set[int]()
    for op, read in zip(step.operators, step.wiring.inputs, strict=True):
        for value in (step.value(v) for v in read if step.producer(v) is None):
            if _lasting(step, value, op.name, changed):
                of_weights |= (
                    set(value.shape) if value.role == "parameter" and len(value.shape) > 1 else set()
                )
            elif value.dtype.startswith(("float", "bfloat")) and len(value.shape) > 1:
                lengths |= set(value.shape[:-1])
                features.add(value.shape[-1])
            else:
                lengths |= set(value.shape)
    return lengths | (features - of_weights)


def _varying_factories(step: Step) -> set[int]:
    """Of one line, with other arguments in another execution: they follow something that changes."""
    seen: dict[tuple[str, str, int], set[str]] = {}
    lines = [(op.name, op.module_path, op.stack_id) for op in step.operators]
    for line, op in zip(lines, step.operators, strict=True):
        seen.setdefault(line, set()).add(op.attributes)
    return {at for at, line in enumerate(lines) if len(seen[line]) > 1 and not step.wiring.inputs[at]}


def _is_mask(step: Step, value: int, sizes: set[int]) -> bool:
    """A square of an input's size that holds few different numbers."""
    kept, sketches = step.value(value), step.profile.sketches
    few = kept.dtype == "bool" or (sketches.known[value] and sketches.distinct[value] < FEWEST_DISTINCT)
    return bool(few) and any(size > 1 and kept.shape.count(size) > 1 for size in sizes)
