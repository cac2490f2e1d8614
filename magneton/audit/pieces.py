"""Which operators a detector may judge, and which of them hang together."""

from collections.abc import Callable, Iterable

from magneton.audit.step import Step


def shows_all(step: Step, at: int) -> bool:
    """Whether it computes, and what it does is in its results: one that returns nothing works elsewhere."""
    written = step.wiring.outputs[at]
    return (
        step.operators[at].effect == "compute"
        and bool(written)
        and all(step.elements(value) for value in written)
    )


def trains(step: Step) -> bool:
    """Gradients and new weights leave a step by ways that no operand shows."""
    return any("backward" in op.name for op in step.operators)


def connected(
    step: Step, positions: Iterable[int], *, key: Callable[[int], int] | None = None
) -> list[list[int]]:
    """Operators that hand values on to each other, through views too, in pieces; ascending.

    Operators whose results have equal ``key`` are in one piece.
    """
    chosen = sorted(positions)
    leader = {at: at for at in chosen}
    maker: dict[object, int] = {}
    for at in chosen:
        links: list[object] = [("storage", one) for one in step.storages(step.wiring.inputs[at])]
        made: list[object] = [("storage", one) for one in step.storages(step.wiring.outputs[at])]
        if key is not None:
            made += [("key", key(value)) for value in step.wiring.outputs[at]]
        for link in (*links, *made):
            if link in maker:
                leader[_lead(leader, maker[link])] = _lead(leader, at)
        maker |= dict.fromkeys(made, at)
    pieces: dict[int, list[int]] = {}
    for at in chosen:
        pieces.setdefault(_lead(leader, at), []).append(at)
    return list(pieces.values())


def _lead(leader: dict[int, int], at: int) -> int:
    while leader[at] != at:
        leader[at] = leader[leader[at]]
        at = leader[at]
    return at
