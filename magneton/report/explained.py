"""Which operators were meant, where each is, and, where it is one, why: with all that is spoken of."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from magneton.match.explanation import Explanation, explain_operator
from magneton.match.model import Matching, SideName, Unpaired, ValuePair
from magneton.profile.model import OpId, Profile, ValueId
from magneton.report.mentioned import MentionedOperator, MentionedValue, mention_operator, mention_value

Asked = tuple[SideName, OpId]
Id = TypeVar("Id", OpId, ValueId)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOperator:
    """``region`` indexes ``Matching.regions``; exactly one of it and ``leftover`` is set."""

    operator: MentionedOperator
    region: int | None
    leftover: Unpaired | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """``explanation`` where one operator was meant. ``mentioned`` are the operators and values it names."""

    asked: str
    operators: tuple[PlacedOperator, ...]
    explanation: Explanation | None
    mentioned_operators: tuple[MentionedOperator, ...]
    mentioned_values: tuple[MentionedValue, ...]


def explain(
    baseline: Profile, candidate: Profile, matching: Matching, asked: str, operators: Sequence[Asked]
) -> Explained:
    """Why the only one of ``operators`` is where it is; of several, where each is."""
    profiles: dict[SideName, Profile] = {"baseline": baseline, "candidate": candidate}
    places = {"baseline": _places(matching, "baseline"), "candidate": _places(matching, "candidate")}
    left: dict[SideName, dict[OpId, Unpaired]] = {
        "baseline": {found.op_id: found.reason for found in matching.only_baseline},
        "candidate": {found.op_id: found.reason for found in matching.only_candidate},
    }
    explanation = (
        explain_operator(baseline, candidate, matching, *operators[0]) if len(operators) == 1 else None
    )
    return Explained(
        asked=asked,
        operators=tuple(
            PlacedOperator(
                operator=mention_operator(side, profiles[side], op_id),
                region=places[side].get(op_id),
                leftover=left[side].get(op_id),
            )
            for side, op_id in operators
        ),
        explanation=explanation,
        mentioned_operators=tuple(
            mention_operator(side, profiles[side], op_id)
            for side, op_id in dict.fromkeys(_operators(explanation))
        ),
        mentioned_values=tuple(
            mention_value(side, profiles[side], value) for side, value in dict.fromkeys(_values(explanation))
        ),
    )


def _places(matching: Matching, side: SideName) -> dict[OpId, int]:
    return {
        op_id: number
        for number, region in enumerate(matching.regions)
        for op_id in (region.baseline if side == "baseline" else region.candidate)
    }


def _operators(explanation: Explanation | None) -> Iterator[Asked]:
    if explanation is None:
        return
    yield explanation.side, explanation.op_id
    if explanation.region is not None:
        yield from _each("baseline", explanation.region.baseline)
        yield from _each("candidate", explanation.region.candidate)
    if explanation.sink is not None:
        yield from _each(explanation.side, explanation.sink.operators)
        for operators in explanation.sink.counterparts:
            yield from _each(other_side(explanation.side), operators)


def _values(explanation: Explanation | None) -> Iterator[tuple[SideName, ValueId]]:
    if explanation is None:
        return
    side, other = explanation.side, other_side(explanation.side)
    yield from _each(side, [read.value for read in explanation.reads])
    for written in explanation.writes:
        recognition = written.recognition
        yield from _each(side, (recognition.value, recognition.root))
        for rival in recognition.rivals:
            yield other, rival.value
            yield from _each(side, rival.taken)
    yield from _paired(_pairs(explanation))


def _pairs(explanation: Explanation) -> Iterator[ValuePair]:
    found = (each.pair for each in (*explanation.reads, *explanation.writes))
    yield from (pair for pair in found if pair is not None)
    yield from explanation.reaches
    if explanation.region is not None:
        yield from (*explanation.region.produces, *explanation.region.consumes)
    if explanation.sink is not None:
        yield from explanation.sink.consumes


def _paired(pairs: Iterable[ValuePair]) -> Iterator[tuple[SideName, ValueId]]:
    for pair in pairs:
        yield from _each("baseline", pair.baseline)
        yield from _each("candidate", pair.candidate)


def _each(side: SideName, ids: Iterable[Id]) -> Iterator[tuple[SideName, Id]]:
    return ((side, each) for each in ids)


def other_side(side: SideName) -> SideName:
    return "candidate" if side == "baseline" else "baseline"
