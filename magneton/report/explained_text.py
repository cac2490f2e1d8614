"""Why one operator is where it is, for people; or which operators were meant."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.match.explanation import ExplainedRegion, Explanation, WrittenValue
from magneton.match.model import SideName, ValuePair
from magneton.profile.model import OpId, ValueId
from magneton.report.console import facts_table, heading
from magneton.report.escape import visible
from magneton.report.explained import Explained, PlacedOperator, other_side
from magneton.report.json import document
from magneton.report.matching_text import GROUNDS
from magneton.report.mentioned import (
    MentionedOperator,
    MentionedValue,
    operator_line,
    value_line,
    values_line,
)
from magneton.report.origins import frame_text
from magneton.report.reasons import pair_sentence, place_sentences, rival_line, verdict_sentence
from magneton.report.work import reason_text

EXPLANATION_SCHEMA = "magneton-match-explanation"
EXPLANATION_VERSION = 1

Facts = list[tuple[str, Text | str]]


def explanation_json(explained: Explained) -> str:
    return document(EXPLANATION_SCHEMA, EXPLANATION_VERSION, explained)


def print_explained(explained: Explained, console: Console, *, top: int = 10) -> None:
    """All about one operator; of several, a line each. ``top`` bounds every list."""
    if explained.explanation is None:
        _print_found(explained, console, top)
        return
    page = _Page(explained, explained.explanation, top)
    console.print(facts_table(page.operator()))
    console.print()
    console.print(heading("Why it is there"))
    console.print(Padding(Text("\n".join(page.place())), (1, 0, 1, 3)))
    writes = explained.explanation.writes
    for number, written in enumerate(writes[:top], start=1):
        console.print(heading(page.title(number)))
        console.print(Padding(facts_table(page.written(written)), (1, 0, 1, 3)))
    if len(writes) > top:
        console.print(f"{len(writes) - top} more results: --top shows them\n")
    if explained.explanation.region is not None:
        region = explained.explanation.region
        console.print(heading(f"Region {region.number}{_repeated(region)}"))
        console.print(Padding(facts_table(page.region(region)), (1, 0, 1, 3)))


def _repeated(region: ExplainedRegion) -> str:
    return f", one of {region.times} equal ones" if region.times > 1 else ""


def _print_found(explained: Explained, console: Console, top: int) -> None:
    found = explained.operators
    console.print(
        f"{visible(explained.asked)} stands for {len(found)} operators; --explain takes the id of one.\n"
    )
    for placed in found[:top]:
        console.print(_found_line(placed), overflow="fold")
    if len(found) > top:
        console.print(f"\n{len(found) - top} more: --top shows them")


def _found_line(placed: PlacedOperator) -> Text:
    operator = placed.operator
    where = (
        f"region {placed.region}" if placed.leftover is None else f"left over: {reason_text(placed.leftover)}"
    )
    module = visible(operator.module_path) or "outside any module"
    return Text(f"{operator_line(operator)}  {visible(operator.phase)}\n    {module}  {where}")


class _Page:
    """The facts about one operator, with what it names looked up."""

    def __init__(self, explained: Explained, explanation: Explanation, top: int) -> None:
        self._explanation = explanation
        self._top = top
        self._values = {(value.side, value.value_id): value for value in explained.mentioned_values}
        self._operators = {(op.side, op.op_id): op for op in explained.mentioned_operators}
        self._own = self._operator(explanation.side, explanation.op_id)

    def operator(self) -> Facts:
        own = self._own
        facts: Facts = [
            ("operator", f"{operator_line(own).partition('  ')[0]}, in {visible(own.phase)}"),
            ("module", visible(own.module_path) or "outside any module"),
            ("line", frame_text(own.source)),
        ]
        for read in self._explanation.reads[: self._top]:
            known = "not paired" if read.pair is None else f"paired with {self._there(read.pair)}"
            facts.append(("reads", f"{value_line(self._value(self._explanation.side, read.value))}; {known}"))
        if not self._explanation.reads:
            facts.append(("reads", "nothing"))
        return [*facts, *_more("reads", len(self._explanation.reads), self._top)]

    def place(self) -> list[str]:
        reaches = [
            values_line(self._parts(self._explanation.side, pair)) for pair in self._explanation.reaches
        ]
        return [*place_sentences(self._explanation, reaches, self._top)]

    def title(self, number: int) -> str:
        several = len(self._explanation.writes) > 1
        return f"What it writes, {number} of {len(self._explanation.writes)}" if several else "What it writes"

    def written(self, written: WrittenValue) -> Facts:
        recognition, side = written.recognition, self._explanation.side
        facts: Facts = [("value", value_line(self._value(side, recognition.value)))]
        facts.append(("verdict", verdict_sentence(recognition)))
        if written.pair is not None:
            facts.append(
                ("paired", f"with {self._there(written.pair)}: {pair_sentence(written.pair, recognition)}")
            )
        if recognition.root != recognition.value:
            facts.append(("laid out", f"anew from {value_line(self._value(side, recognition.root))}"))
        if recognition.class_size > 1:
            others = recognition.class_size - 1
            facts.append(
                ("alike", f"{others} other values of this side hold the same numbers (views, copies)")
            )
        if recognition.generations > 1:
            generation = f"{recognition.generation + 1} of {recognition.generations}"
            facts.append(("generation", f"{generation}: the same numbers, made anew from those before"))
        for rival in recognition.rivals[: self._top]:
            there = self._value(other_side(side), rival.value)
            ours = self._value(side, recognition.root)
            taken = [self._value(side, value) for value in rival.taken]
            facts.append(("other side", rival_line(rival, there, ours, taken)))
        return facts

    def region(self, region: ExplainedRegion) -> Facts:
        facts: Facts = [("both sides", GROUNDS[region.ground])]
        facts += [("consumes", self._pair(pair)) for pair in region.consumes[: self._top]]
        facts += _more("consumes", len(region.consumes), self._top)
        facts += [("produces", self._pair(pair)) for pair in region.produces[: self._top]]
        facts += _more("produces", len(region.produces), self._top)
        sides: tuple[tuple[SideName, Sequence[OpId]], ...] = (
            ("baseline", region.baseline),
            ("candidate", region.candidate),
        )
        for side, operators in sides:
            lines = [_listed(self._operator(side, op)) for op in operators[: self._top]]
            lines += [f"{len(operators) - self._top} more"] if len(operators) > self._top else []
            facts.append((side, "\n".join(lines)))
        return facts

    def _pair(self, pair: ValuePair) -> str:
        one, other = self._parts("baseline", pair), self._parts("candidate", pair)
        return f"{values_line(one)} = {values_line(other)} [{pair.evidence}]"

    def _there(self, pair: ValuePair) -> str:
        return values_line(self._parts(other_side(self._explanation.side), pair))

    def _parts(self, side: SideName, pair: ValuePair) -> list[MentionedValue]:
        values: Sequence[ValueId] = pair.baseline if side == "baseline" else pair.candidate
        return [self._value(side, value) for value in values]

    def _value(self, side: SideName, value: ValueId) -> MentionedValue:
        return self._values[side, value]

    def _operator(self, side: SideName, op_id: OpId) -> MentionedOperator:
        return self._operators[side, op_id]


def _listed(operator: MentionedOperator) -> str:
    module = f"  {visible(operator.module_path)}" if operator.module_path else ""
    return f"{operator_line(operator)}{module}"


def _more(name: str, count: int, top: int) -> Facts:
    return [(name, f"{count - top} more")] if count > top else []
