"""A comparison for people, on a terminal of 80 columns or more."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.compare.model import Comparison, OutputCheck, SameWork, ValuePlace
from magneton.profile.model import Doubt
from magneton.report.accounts import print_rows, print_totals
from magneton.report.console import facts_table, heading
from magneton.report.escape import visible
from magneton.report.findings import difference_line, print_findings
from magneton.report.origins import (
    compared_meter_facts,
    device_line,
    doubt_line,
    frame_text,
    system_line,
    workload_line,
)

GENERATED = {"tokens", "logits", "fed"}  # the outputs of a generation
_VERDICT_STYLES = {
    "findings": "bold red",
    "no difference": "bold green",
    "unresolved": "bold magenta",
    "not the same work": "bold red",
}
_UNSEEN_DIFFERENCES = 12  # of versions and flags, listed at the end

_HINT = (
    "How to read this: figures are per step with a 95 % interval. A ratio is candidate over baseline, so"
    " above 1 the candidate spends more. The lines of a table add up to the whole step: 'unattributed' is"
    " what no operator accounts for (it may be negative), and work that only one side does stands alone."
    " The lines set in below 'unattributed' add up to it: what the system was doing between operators, by"
    " samples of its Python stack."
)


def print_comparison(comparison: Comparison, console: Console, *, top: int = 10) -> None:
    """Header, verdict, totals, findings, tables, doubts; ``top`` bounds findings and rows of a table."""
    _print_header(comparison, console)
    _print_verdict(comparison, console)
    if comparison.verdict == "not the same work":
        _print_divergence(comparison.same_work, console)
    print_totals(comparison, console)
    print_findings(comparison, console, top)
    if comparison.verdict != "not the same work":  # a region's excess means nothing then
        print_rows(comparison, console, top)
    _print_doubts(comparison, console)
    console.print(Text(_HINT, style="dim"))


def _print_header(comparison: Comparison, console: Console) -> None:
    origin = comparison.baseline.origin
    console.print(
        facts_table(
            (
                ("baseline", system_line(origin)),
                ("candidate", system_line(comparison.candidate.origin)),
                ("model", _model_line(comparison)),
                ("workload", workload_line(origin)),
                ("device", device_line(origin)),
                *compared_meter_facts(origin, comparison.candidate.origin),
                ("recorded", "in turns, in one session" if comparison.paired else "apart"),
                ("same work", _same_work_line(comparison.same_work)),
            )
        )
    )
    console.print()


def _model_line(comparison: Comparison) -> str:
    one, other = comparison.baseline.origin.model, comparison.candidate.origin.model
    return visible(one if one == other else f"{one} / {other}")


def _same_work_line(same_work: SameWork) -> Text:
    if same_work.status == "unchecked":
        return Text("not checked: no outputs were declared", style="magenta")
    checks = same_work.outputs
    if same_work.status == "different":
        failed = sum(check.problem is not None for check in checks)
        return Text(f"no: {failed} of {len(checks)} outputs differ", style="bold red")
    line = Text(f"yes: {_agreement(checks)}", style="green")
    gaps = [c.max_difference / c.allowed for c in checks if c.allowed and c.max_difference is not None]
    if gaps:
        largest = max(gaps) * same_work.tolerance
        line.append(
            f" within {largest:.2g} of their rms ({same_work.tolerance:g} is allowed)", style="default"
        )
    for check in checks:
        if check.note:
            line.append(visible(f"; {check.name}: {check.note}"), style="default")
    return line


def _agreement(checks: Sequence[OutputCheck]) -> str:
    """A generation's outputs by what they are, others by their number."""
    kinds = {check.name.rpartition(".")[2] for check in checks}
    if {"tokens", "logits"} <= kinds <= GENERATED:
        tied = any(check.note for check in checks)
        return "tokens agree, logits agree" if tied else "greedy tokens are equal, logits agree"
    return "the only output agrees" if len(checks) == 1 else f"{len(checks)} outputs agree"


def _print_verdict(comparison: Comparison, console: Console) -> None:
    line = Text("Verdict: ", style="bold")
    line.append(comparison.verdict, style=_VERDICT_STYLES[comparison.verdict])
    line.append(": " + visible(comparison.reason))
    console.print(line)
    console.print()


def _print_divergence(same_work: SameWork, console: Console) -> None:
    facts = [(visible(check.name), _output_line(check)) for check in same_work.outputs]
    console.print(heading("Outputs"))
    console.print(Padding(facts_table(facts), (1, 0, 1, 3)))
    divergence = same_work.divergence
    if divergence is None:
        return
    console.print(heading("Where the values part"))
    console.print(
        Padding(
            facts_table(
                (
                    ("how", visible(divergence.text)),
                    ("baseline", _place(divergence.baseline)),
                    ("candidate", _place(divergence.candidate)),
                )
            ),
            (1, 0, 1, 3),
        )
    )


def _output_line(check: OutputCheck) -> str:
    if check.problem is not None:
        return visible(check.problem)
    return visible(f"agrees{f' ({check.note})' if check.note else ''}")


def _place(place: ValuePlace) -> Text:
    shape = "x".join(str(size) for size in place.shape) or "scalar"
    name = f"{place.role} {place.name}".strip()
    maker = f", made by {place.producer}" if place.producer else ""
    module = f" in {place.module_path}" if place.module_path else ""
    line = Text(visible(f"{name} {place.dtype} {shape}{maker}{module}"))
    return line.append("\n").append_text(frame_text(place.source)) if place.producer else line


def _print_doubts(comparison: Comparison, console: Console) -> None:
    """Notes on the comparison, doubts about either side, and what is set differently."""
    facts: list[tuple[str, str | Text]] = [("note", visible(note)) for note in comparison.notes]
    for side, doubts in (
        ("baseline", comparison.baseline.doubts),
        ("candidate", comparison.candidate.doubts),
    ):
        facts += _doubt_facts(side, doubts)
    for difference in comparison.differences[:_UNSEEN_DIFFERENCES]:
        facts.append(("differs", difference_line(difference)))
    more = len(comparison.differences) - _UNSEEN_DIFFERENCES
    if more > 0:
        facts.append(("differs", f"{more} more settings (--format json lists them)"))
    if facts:
        console.print(heading("To keep in mind"))
        console.print(Padding(facts_table(facts), (1, 0, 1, 3)))


def _doubt_facts(side: str, doubts: tuple[Doubt, ...]) -> list[tuple[str, str | Text]]:
    return [(side, doubt_line(doubt)) for doubt in doubts]
