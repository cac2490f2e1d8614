"""A tensor that is made longer by concatenating again and again: all of it is copied each time."""

from collections.abc import Iterator

from magneton.audit.model import Sighting
from magneton.audit.pieces import shows_all
from magneton.audit.step import Step
from magneton.compare.places import source_line

FEWEST = 3


def growing_concatenations(step: Step) -> Iterator[Sighting]:
    before = _predecessors(step)
    lasts = set(before) - set(before.values())
    for last in sorted(lasts):
        chain = [last]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        if len(chain) < FEWEST:
            continue
        sizes = [step.elements(step.wiring.outputs[at][0]) for at in chain]
        yield Sighting(
            pattern="growing concatenation",
            operators=tuple(step.op_id(at) for at in reversed(chain)),
            evidence=f"{len(chain)} concatenations in a row copy {sum(sizes)} elements to make {sizes[0]}",
            change="write into memory that is allocated once, or collect the parts and concatenate once",
            avoidable=1 - sizes[0] / sum(sizes),
        )


def _predecessors(step: Step) -> dict[int, int]:
    """Concatenation -> the earlier one, on the same line of the same module, whose result it makes longer."""
    found: dict[int, int] = {}
    for at, op in enumerate(step.operators):
        if not op.name.startswith("aten.cat.") or not shows_all(step, at) or not step.wiring.inputs[at]:
            continue
        maker = _maker(step, step.wiring.inputs[at][0])
        if (
            maker is not None
            and maker < at
            and shows_all(step, maker)
            and _place(step, maker) == _place(step, at)
        ):
            found[at] = maker
    return found


def _maker(step: Step, value: int) -> int | None:
    """The operator whose whole result this is, seen through views."""
    at, elements = step.producer(value), step.elements(value)
    while at is not None and step.operators[at].effect == "view" and step.wiring.inputs[at]:
        value = step.wiring.inputs[at][0]
        if step.elements(value) != elements:
            return None
        earlier = step.producer(value)
        at = earlier if earlier is not None and earlier < at else None
    return at


def _place(step: Step, at: int) -> tuple[object, ...]:
    op = step.operators[at]
    return op.name, op.module_path, source_line(step.profile.stacks[op.stack_id])
