"""A result for people, on a terminal of 80 columns or more.

The verdict comes first; then where it stops, if it does, what it is about, under which assumptions it holds,
and what it leans on.
"""

from collections.abc import Sequence

from scalify.report.advice import what_to_do, why
from scalify.report.grouping import grouped
from scalify.report.page import Page, Piece, Styled
from scalify.report.precision import add_precision
from scalify.report.quantities import counted, seconds_text
from scalify.report.result import Assumption, Axis, Program, Result
from scalify.report.suspect import add_suspect
from scalify.report.witness import add_witness
from scalify.verdict import Difference, OutputDifference, OutputResult


def add_report(page: Page, result: Result, *, full: bool = False) -> None:
    """``full`` shows the whole chain around a suspect, and where it was called from."""
    _add_verdict(page, result)
    add_witness(page, result, full=full)
    if result.suspect is not None:
        refuted = result.verdict == "refuted"
        add_suspect(page, result.suspect, result.sources, refuted=refuted, full=full)
    _add_lead(page, result)
    _add_missing(page, result)
    add_precision(page, result.precision, result.sources)
    _add_outputs(page, result)
    _add_assumptions(page, result)
    _add_trust(page, result)
    _add_work(page, result)


def mesh_text(mesh: tuple[Axis, ...]) -> str:
    """``4 ranks (tp=2, dp=2)``, or ``one device``."""
    ranks = 1
    for axis in mesh:
        ranks *= axis.size
    names = ", ".join(f"{axis.name}={axis.size}" for axis in mesh)
    return f"{counted(ranks, 'rank')} ({names})" if mesh else "one device"


def _add_verdict(page: Page, result: Result) -> None:
    match result.verdict:
        case "proved":
            page.line(Styled("PROVED", "good"), ": the outputs are equal over the reals")
        case "refuted":
            page.line(Styled("REFUTED", "bad"), ": there are inputs on which the outputs differ")
        case "unknown":
            page.line(Styled("UNKNOWN", "doubt"), f": {why(result)}")
    page.fact("baseline", _program_text(result.baseline))
    page.fact("candidate", _program_text(result.candidate))


def _program_text(program: Program) -> str:
    """``llama-tp4.pt: 863 nodes on 4 ranks (tp=4)``."""
    first = program.files[0].path if program.files else program.name
    name = first if len(program.files) < 2 else f"{first} and {len(program.files) - 1} more"
    if program.nodes is None or program.mesh is None:
        return f"{name}: not loaded"
    return f"{name}: {counted(program.nodes, 'node')} on {mesh_text(program.mesh)}"


def _add_lead(page: Page, result: Result) -> None:
    if result.lead:
        page.heading("A reason to look, but no refutation")
        page.line(result.lead, first="  ", hang=2)


def _add_missing(page: Page, result: Result) -> None:
    advice = what_to_do(result)
    if not advice:
        return
    if result.missing:
        page.heading("What is missing")
        for each in result.missing:
            page.entry(each)
    page.heading("What to do")
    page.line(advice, first="  ", hang=2)


def _add_outputs(page: Page, result: Result) -> None:
    if not result.outputs:
        return
    page.heading("Outputs")
    differing = {(each.baseline, each.candidate) for each in _differing(result)}

    def said_of(output: OutputResult) -> Styled:
        if (output.baseline, output.candidate) in differing:
            return Styled("differs", "bad")
        return Styled("not proved", "doubt") if output.layout is None else Styled(output.layout, "good")

    for group in grouped(result.outputs, _output_name, lambda output: said_of(output).text):
        said = said_of(group.first)
        page.entry(_times(len(group.items), "output", group.name), ": ", said)


def _differing(result: Result) -> Sequence[OutputDifference | Difference]:
    if result.witness is None:
        return ()
    return [result.witness.difference, *(each for each in result.witness.outputs if each.differing)]


def _output_name(output: OutputResult) -> str:
    renamed = output.baseline not in (output.candidate, output.candidate.partition("@rank")[0])
    return f"{output.candidate} for {output.baseline}" if renamed else output.candidate


def _times(count: int, noun: str, name: str) -> str:
    return name if count == 1 else f"{counted(count, noun)} {name}"


def _add_assumptions(page: Page, result: Result) -> None:
    if not (result.assumptions or result.notes or result.unused):
        return
    page.heading("Under these assumptions")
    for group in grouped(result.assumptions, _input_name, lambda each: f"{each.stated:d}{each.text}"):
        first = group.first
        stated: tuple[Piece, ...] = (Styled(" (stated)", "bold"),) if first.stated else ()
        page.entry(_times(len(group.items), "input", group.name), f": {first.text}", *stated)
    for note in result.notes:
        page.entry(note)
    for unused in grouped(result.unused, str, lambda _: ""):
        page.entry(
            _times(len(unused.items), "input", unused.name), " of the baseline: not used by the candidate"
        )


def _input_name(assumption: Assumption) -> str:
    """An input's name, and of what it is a part where that is called otherwise."""
    if assumption.of in ((), (assumption.input,)):
        return assumption.input
    return f"{assumption.input} of {' + '.join(assumption.of)}"


def _add_trust(page: Page, result: Result) -> None:
    if result.trust is None:
        return
    page.heading("What the proof leans on")
    page.entry(f"rules of version {result.trust.rules_version}")
    for policy in result.trust.policies:
        page.entry(policy)


def _add_work(page: Page, result: Result) -> None:
    parts: list[str] = []
    if result.progress is not None and result.verdict != "proved":
        parts.append(f"{result.progress.done} of {counted(result.progress.total, 'region')} proved")
    if result.work is not None:
        parts.append(f"{counted(result.work.regions, 'region')} ({result.work.distinct_regions} distinct)")
        parts.append(counted(result.work.derivations, "derivation"))
        parts.append(f"{seconds_text(result.work.cpu_s)} proving")
    if result.cost is not None:
        cpu = (
            ""
            if result.cost.cpu_s is None
            else f"{seconds_text(result.cost.cpu_s)} of processor time in all, "
        )
        parts.append(f"{cpu}{seconds_text(result.cost.wall_s)} by the clock")
    if parts:
        page.blank()
        page.line(Styled("; ".join(parts), "faint"))
