"""Where the candidate could not be followed any further."""

from collections.abc import Mapping

from scalify.report.page import Page, Styled
from scalify.report.places import add_place, place_pieces, site_pieces
from scalify.verdict import Suspect

CHAIN_SHOWN = 6


def add_suspect(page: Page, suspect: Suspect, sources: Mapping[str, str], *, full: bool) -> None:
    """Both places, what is known and needed, and the movements of data around them."""
    page.heading("Where it stops")
    add_place(page, "candidate", suspect.candidate, sources)
    if full:
        _add_callers(page, suspect)
    if suspect.baseline is None:
        page.fact("baseline", Styled("no counterpart is known", "faint"))
    else:
        add_place(page, "baseline", suspect.baseline, sources)
    for fact in suspect.known:
        page.fact("known", fact)
    if suspect.needed:
        page.fact("needed", suspect.needed)
    _add_chain(page, suspect, full=full)
    if suspect.guess:
        page.fact("likely", Styled(suspect.guess, "bold"))


def _add_callers(page: Page, suspect: Suspect) -> None:
    frames = [site for site in reversed(suspect.candidate.stack) if site != suspect.candidate.site]
    for number, site in enumerate(frames):
        page.fact("" if number else "called by", *site_pieces(site))


def _add_chain(page: Page, suspect: Suspect, *, full: bool) -> None:
    shown = suspect.chain if full else suspect.chain[:CHAIN_SHOWN]
    for number, place in enumerate(shown):
        page.fact("" if number else "around it", *place_pieces(place))
    hidden = len(suspect.chain) - len(shown)
    if hidden:
        page.fact("", Styled(f"and {hidden} more: -v or scalify explain shows them", "faint"))
