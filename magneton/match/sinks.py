"""Operators whose results reach no anchor: outputs that differ, cache writes, host syncs, dead results.

Those that work on each other's results form one sink. Sinks of both sides pair when they consume the
same anchors; first those that also compute the same, then, one against one, whatever they compute (other
weights; logits of the last position against those of all).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from magneton.match.distance import threshold
from magneton.match.frontier import Laid
from magneton.match.reach import SINK
from magneton.match.unions import Unions
from magneton.profile.distance import distances

FEW_OPERATORS = 8  # sinks as small as this pair even if all they consume existed before the phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """``shapes`` tells what each operator makes of what, without its name."""

    operators: tuple[int, ...]  # positions
    consumes: frozenset[int]  # anchors
    computed: bool  # whether any of them is computed in the phase
    shapes: Hashable
    syncs: bool
    last: bool  # holds the last operator of the phase that is no sync


def find_sinks(laid: Laid) -> tuple[Sink, ...]:
    wiring, region = laid.side.wiring, laid.reach.region
    joined = Unions(len(region))
    for at, written in enumerate(wiring.outputs):
        if region[at] == SINK:
            for value in written:
                for reader in wiring.consumers.get(value, ()):
                    joined.union(at, reader)
    parts: dict[int, list[int]] = {}
    for at, assigned in enumerate(region):
        if assigned == SINK:
            parts.setdefault(joined.find(at), []).append(at)
    end = max((at for at, op in enumerate(wiring.operators) if op.effect != "sync"), default=-1)
    return tuple(_sink(laid, part, end) for part in parts.values())


def _sink(laid: Laid, part: Sequence[int], end: int) -> Sink:
    wiring, values = laid.side.wiring, laid.side.wiring.profile.values
    anchor = laid.marks.anchor
    inside = {value for at in part for value in wiring.outputs[at]}
    read = [v for at in part for v in wiring.inputs[at] if v in anchor and v not in inside]
    shapes = tuple(
        (
            wiring.operators[at].effect,
            tuple((values[v].shape, values[v].dtype) for v in wiring.inputs[at]),
            tuple((values[v].shape, values[v].dtype) for v in wiring.outputs[at]),
        )
        for at in part
    )
    return Sink(
        operators=tuple(part),
        consumes=frozenset(anchor[v] for v in read),
        computed=any(v in wiring.producer for v in read),
        shapes=shapes,
        syncs=any(wiring.operators[at].effect == "sync" for at in part),
        last=end in part,
    )


def pair_sinks(
    laid: tuple[Laid, Laid], baseline: Sequence[Sink], candidate: Sequence[Sink]
) -> tuple[tuple[Sink, Sink], ...]:
    alike = _pair_by(baseline, candidate, lambda sink: (sink.consumes, sink.shapes), alone=False)
    exact = tuple((x, y) for x, y in alike if _computes_the_same(laid, x, y))
    left_x = _without(baseline, [x for x, _ in exact])
    left_y = _without(candidate, [y for _, y in exact])

    def loosely(sink: Sink) -> Hashable:
        if not sink.consumes or not (sink.computed or len(sink.operators) <= FEW_OPERATORS):
            return None
        return sink.consumes, sink.syncs, sink.last

    return (*exact, *_pair_by(left_x, left_y, loosely, alone=True))


def _computes_the_same(laid: tuple[Laid, Laid], baseline: Sink, candidate: Sink) -> bool:
    """Value by value, as far as both sides were sketched. Their shapes agree."""
    wirings = laid[0].side.wiring, laid[1].side.wiring
    rows_x, rows_y = (
        np.array([v for at in sink.operators for v in wiring.outputs[at]], dtype=np.int64)
        for wiring, sink in zip(wirings, (baseline, candidate), strict=True)
    )
    sketches_x, sketches_y = wirings[0].profile.sketches, wirings[1].profile.sketches
    known = sketches_x.known[rows_x] & sketches_y.known[rows_y]
    apart = distances(sketches_x, rows_x[known], sketches_y, rows_y[known])
    return bool(np.all(apart <= threshold(sketches_x.count[rows_x[known]])))


def _pair_by(
    baseline: Sequence[Sink], candidate: Sequence[Sink], key: Callable[[Sink], Hashable], *, alone: bool
) -> list[tuple[Sink, Sink]]:
    """Equal keys pair in order if equally many have them; only one on each side if ``alone``."""
    by_key_x, by_key_y = _by_key(baseline, key), _by_key(candidate, key)
    found: list[tuple[Sink, Sink]] = []
    for which, xs in by_key_x.items():
        ys = by_key_y.get(which, [])
        if which is not None and len(xs) == len(ys) and not (alone and len(xs) > 1):
            found += zip(xs, ys, strict=True)
    return found


def _by_key(sinks: Sequence[Sink], key: Callable[[Sink], Hashable]) -> Mapping[Hashable, list[Sink]]:
    kept: dict[Hashable, list[Sink]] = {}
    for sink in sinks:
        kept.setdefault(key(sink), []).append(sink)
    return kept


def _without(sinks: Sequence[Sink], taken: Sequence[Sink]) -> list[Sink]:
    gone = {sink.operators for sink in taken}
    return [sink for sink in sinks if sink.operators not in gone]
