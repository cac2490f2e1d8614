"""``magneton match``."""

from pathlib import Path
from typing import Annotated

import typer

from magneton.cli.options import Format, FormatOption, TopOption

EPILOG = """Examples:

\b
  magneton match baseline.mgn candidate.mgn --phase prefill
  magneton match baseline.mgn candidate.mgn --explain aten.softmax
  magneton match baseline.mgn candidate.mgn --explain model.layers.0.self_attn
  magneton match baseline.mgn candidate.mgn --explain baseline:57

Exit status 4 if nothing that one side computes is recognised on the other.
"""


def match(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="A recorded profile, *.mgn.")],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="likewise")],
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="OP",
            help="Why an operator is where it is: baseline:ID, candidate:ID, its name, or its module.",
        ),
    ] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", metavar="PHASE", help="Show one phase only.")
    ] = None,
    top: TopOption = 10,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show which operators of two profiles do the same work, and on what evidence.

    Operators are aligned by the values that flow through them, as `compare` does before it compares.
    """
    from magneton.cli.asked import operators_asked, phase_asked
    from magneton.compare.comparability import check_matchable
    from magneton.errors import EXIT_OK, EXIT_UNRESOLVED
    from magneton.match.matching import match as match_profiles
    from magneton.profile.store import load
    from magneton.report.explained import explain as explain_operators
    from magneton.report.matching import summarise_matching
    from magneton.report.output import print_result

    sides = load(baseline), load(candidate)
    check_matchable(sides[0].origin, sides[1].origin)
    chosen = phase_asked(phase, *sides)
    asked = None if explain is None else operators_asked(explain, *sides, chosen)
    matching = match_profiles(*sides)
    if explain is not None and asked is not None:
        print_result(explain_operators(*sides, matching, explain, asked), output_format.value, top=top)
        return
    summary = summarise_matching(*sides, matching, chosen)
    print_result(summary, output_format.value, top=top)
    raise typer.Exit(EXIT_UNRESOLVED if summary.is_empty else EXIT_OK)
