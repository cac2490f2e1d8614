"""A matching for people, on a terminal of 80 columns or more."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.compare.model import Work
from magneton.match.grounds import Ground
from magneton.report.console import Line, facts_table, figures_table, heading
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.report.matching import GroupSummary, LeftoverSummary, MatchingSummary, PhaseMatching
from magneton.report.mentioned import operator_line
from magneton.report.origins import short_place, system_line, workload_line
from magneton.report.work import operators_line, reason_text, work_title

MATCHING_SCHEMA = "magneton-matching"
MATCHING_VERSION = 1
FIGURES = 50  # columns that the figures beside a region's title take
KINDS = 3  # of leftovers, shown for each reason

GROUNDS: dict[Ground, str] = {
    "value": "produce equal values",
    "composite": "produce a value and its parts",
    "context": "produce values told apart by their neighbours",
    "order": "produce values told apart by order only",
    "output": "end the phase, their results not recognised",
    "consumes": "read equal values, produce none",
    "serves": "serve the same regions (masks, tables)",
    "input": "produce what the other side is given",
    "parameter": "produce a weight of the other side",
}
_HINT = (
    "How to read this: a region is a set of operators, on both sides, that turn equal values into equal"
    " values. --explain OP shows why an operator is where it is; OP is one of the ids above (baseline:57),"
    " an operator's name or a module's path."
)


def matching_json(summary: MatchingSummary) -> str:
    return document(MATCHING_SCHEMA, MATCHING_VERSION, summary)


def print_matching(summary: MatchingSummary, console: Console, *, top: int = 10) -> None:
    """Both sides, then for each phase what pairs on what evidence, its largest regions, what is left over."""
    _print_sides(summary, console)
    if summary.is_empty:
        console.print(
            Text(
                "Nothing is recognised: no value that one side computes has a counterpart on the other.",
                style="bold red",
            )
        )
        console.print()
    for phase in summary.phases:
        groups = [group for group in summary.groups if group.phase == phase.phase]
        leftovers = [each for each in summary.leftovers if each.phase == phase.phase]
        _print_phase(phase, console)
        _print_groups(groups, console, top)
        _print_leftovers(leftovers, console)
    console.print(Text(_HINT, style="dim"))


def _print_sides(summary: MatchingSummary, console: Console) -> None:
    one, other = summary.baseline, summary.candidate
    models = one.model if one.model == other.model else f"{one.model} / {other.model}"
    console.print(
        facts_table(
            (
                ("baseline", system_line(one)),
                ("candidate", system_line(other)),
                ("model", visible(models)),
                ("workload", workload_line(one)),
                *(("note", visible(note)) for note in summary.notes),
            )
        )
    )
    console.print()


def _print_phase(phase: PhaseMatching, console: Console) -> None:
    console.print(heading(f"What pairs in {visible(phase.phase)}"))
    console.print()
    lines = [
        Line(cells=(GROUNDS[each.ground], str(each.regions), str(each.baseline), str(each.candidate)))
        for each in phase.grounds
    ]
    left = phase.baseline - phase.baseline_paired, phase.candidate - phase.candidate_paired
    lines.append(Line(cells=("left over", "", *map(str, left))))
    whole = ("all", *map(str, (phase.regions, phase.baseline, phase.candidate)))
    columns = ("operators in regions that", "regions", "baseline", "candidate")
    console.print(figures_table(columns, [*lines, Line(cells=whole)], width=console.width, total=True))
    pairs = ", ".join(f"{evidence} {count}" for evidence, count in phase.evidence.items())
    if pairs:
        total = sum(phase.evidence.values())
        console.print(f"{total} pairs of values bound these regions, by evidence: {pairs}\n")


def _print_groups(groups: Sequence[GroupSummary], console: Console, top: int) -> None:
    """Two lines of work below each: one where both sides do the same."""
    if not groups:
        return
    console.print(heading("Regions, the largest first"))
    console.print()
    largest = sorted(groups, key=lambda group: -_operators(group) * len(group.regions))
    longest = console.width - FIGURES
    lines = [
        Line(
            cells=(
                work_title(group.baseline, longest),
                str(len(group.regions)),
                str(len(group.baseline_operators)),
                str(len(group.candidate_operators)),
                str(group.produces),
                str(group.consumes),
            ),
            below=_work_lines(group),
        )
        for group in largest[:top]
    ]
    columns = ("work", "times", "baseline", "candidate", "makes", "reads")
    console.print(figures_table(columns, lines, width=console.width))
    if len(groups) > top:
        console.print(f"{len(groups) - top} more kinds of regions: --top shows them\n")


def _operators(group: GroupSummary) -> int:
    return len(group.baseline_operators) + len(group.candidate_operators)


def _work_lines(group: GroupSummary) -> str:
    one = _work_line(f"baseline:{group.baseline_operators[0]}", group.baseline)
    other = _work_line(f"candidate:{group.candidate_operators[0]}", group.candidate)
    return f"{one}\n{other}"


def _work_line(first: str, work: Work) -> str:
    return "  ".join(part for part in (first, short_place(work.source), operators_line(work, most=4)) if part)


def _print_leftovers(leftovers: Sequence[LeftoverSummary], console: Console) -> None:
    if not leftovers:
        return
    console.print(heading("Left over, on one side only"))
    facts = [(f"{each.side} {each.operators}", _leftover_text(each)) for each in leftovers]
    console.print(Padding(facts_table(facts), (1, 0, 1, 3)))


def _leftover_text(leftover: LeftoverSummary) -> Text:
    text = Text(reason_text(leftover.reason))
    for kind in leftover.kinds[:KINDS]:
        times = f" x{kind.executions}" if kind.executions > 1 else ""
        text.append(f"\n{operator_line(kind.first)}{times}", style="dim")
    if len(leftover.kinds) > KINDS:
        text.append(f"\n{len(leftover.kinds) - KINDS} more kinds", style="dim")
    return text
