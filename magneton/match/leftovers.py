"""Why an operator is in no paired region."""

from collections.abc import Collection, Sequence

from magneton.match.frontier import Laid
from magneton.match.model import Leftover, Unpaired
from magneton.match.reach import SINK
from magneton.match.sinks import Sink


def explain(
    laid: Laid, paired: Collection[int], sinks: Sequence[Sink], ambiguous: Collection[int]
) -> tuple[Leftover, ...]:
    """A reason for each position that is not in ``paired``. ``ambiguous`` are classes with several rivals."""
    in_sink = {at: sink for sink in sinks for at in sink.operators}
    return tuple(
        Leftover(op_id=op.op_id, reason=_reason(laid, at, in_sink, ambiguous))
        for at, op in enumerate(laid.side.wiring.operators)
        if at not in paired
    )


def _reason(laid: Laid, at: int, in_sink: dict[int, Sink], ambiguous: Collection[int]) -> Unpaired:
    op = laid.side.wiring.operators[at]
    if op.effect == "sync":
        return "sync"
    if laid.reach.region[at] != SINK:
        return "setup"
    if op.effect == "alloc":
        return "alloc"
    sink = in_sink[at]
    if sink.syncs:
        return "sync"
    if not sink.last:
        mutates = any(laid.side.wiring.operators[other].mutated for other in sink.operators)
        return "side-effect" if mutates else "dead"
    return _unrecognised(laid, at, ambiguous)


def _unrecognised(laid: Laid, at: int, ambiguous: Collection[int]) -> Unpaired:
    side = laid.side
    values = side.wiring.outputs[at]
    classes = [side.classes.of[v] for v in values if v in side.classes.of]
    if not any(side.wiring.profile.sketches.known[v] for v in values):
        return "not-sketched"
    if any(which in ambiguous for which in classes):
        return "ambiguous"
    if classes and not any(side.classes.high_entropy[which] for which in classes):
        return "low-entropy"
    return "no-counterpart-value"
