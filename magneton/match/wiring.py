"""One phase of one profile as a graph. Positions count the operators of the phase; values keep their ids.

Nothing here depends on how ids were given: values are ranked by when they first appear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from magneton.match.distance import anchors, drifts
from magneton.profile.distance import Reals
from magneton.profile.model import Operator, Profile, Value
from magneton.workload import Phase

WHOLE = ("int64", "int32", "bool")  # narrower ones may be weights of a quantised model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wiring:
    """Who produces and who reads each value of a phase.

    ``static`` values depend on settings only (buffers, constants, integer inputs, whatever holds few
    different numbers): tables, masks, positions.
    ``values`` lists those that may be recognised: read before they are produced here (sources), or
    produced by an operator that gives them content, in order of appearance.
    """

    profile: Profile
    operators: tuple[Operator, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    producer: Mapping[int, int]  # value -> position; sources have none
    consumers: Mapping[int, Sequence[int]]  # value -> positions, ascending
    values: tuple[int, ...]
    drift: Reals  # [V] of all values of the profile: how far each is from itself when rounded otherwise
    static: frozenset[int]


def wire(profile: Profile, phase: Phase) -> Wiring:
    operators = tuple(op for op in profile.operators if op.phase == phase)
    inputs = tuple(_read(op, profile) for op in operators)
    outputs = tuple(_written(op) for op in operators)
    producer: dict[int, int] = {}
    consumers: dict[int, list[int]] = {}
    for at, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
        for value in dict.fromkeys(read):
            consumers.setdefault(value, []).append(at)
        for value in written:
            producer.setdefault(value, at)
    return Wiring(
        profile=profile,
        operators=operators,
        inputs=inputs,
        outputs=outputs,
        producer=producer,
        consumers=consumers,
        drift=drifts(profile),
        values=_recognisable(operators, inputs, outputs, producer, consumers),
        static=_static(profile, inputs, outputs, producer),
    )


def _read(op: Operator, profile: Profile) -> tuple[int, ...]:
    """New memory is made after the shape of what is given (``empty_like``), not of its content; and what has
    no elements shows nothing of it."""
    if op.outputs and all(0 in profile.values[value].shape for value in op.outputs):
        return ()
    memory = {profile.values[value].storage_id for value in op.outputs}
    shaped = op.effect == "alloc" and not memory & {profile.values[value].storage_id for value in op.inputs}
    return () if shaped else tuple(map(int, op.inputs))


def _written(op: Operator) -> tuple[int, ...]:
    """An argument that is returned as it was is not written."""
    return tuple(dict.fromkeys(int(value) for value in op.outputs if value not in op.inputs))


def _recognisable(
    operators: Sequence[Operator],
    inputs: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
    producer: Mapping[int, int],
    consumers: Mapping[int, Sequence[int]],
) -> tuple[int, ...]:
    """Leaves out what memory happened to hold, and what an operator returns beside what is used of it."""
    found: dict[int, None] = {}
    for op, read, written in zip(operators, inputs, outputs, strict=True):
        new = [value for value in read if value not in producer]
        if op.effect != "alloc":
            new += [value for value in written if value in consumers] or written
        for value in new:
            found[value] = None
    return tuple(found)


def _static(
    profile: Profile,
    inputs: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
    producer: Mapping[int, int],
) -> frozenset[int]:
    tells_much = anchors(profile.sketches)
    static: set[int] = set()
    for read, written in zip(inputs, outputs, strict=True):
        static.update(
            v for v in read if v not in producer and _is_setting(profile.values[v], bool(tells_much[v]))
        )
        if all(v in static for v in read):
            static.update(written)
    return frozenset(static)


def _is_setting(value: Value, tells_much: bool) -> bool:
    """What holds few different numbers is a mask or a scale, whatever its role.

    Else named buffers are tables, and whole numbers places and lengths; other unnamed constants may as well
    be weights or a cache.
    """
    if value.role in ("input", "constant") and tells_much:
        return value.dtype in WHOLE or (value.role == "input" and value.dtype.startswith(("uint", "int")))
    return value.role == "buffer" or (value.role != "activation" and not tells_much)
