"""Where the candidate could not be followed any further."""

from collections.abc import Mapping, Sequence

from scalify.report.page import Page, Styled
from scalify.report.places import add_place, place_pieces, site_pieces
from scalify.report.quantities import counted
from scalify.verdict import Extent, Suspect

CHAIN_SHOWN = 6
CALLERS_SHOWN = 3


def add_suspect(
    page: Page, suspect: Suspect, sources: Mapping[str, str], *, refuted: bool = False, full: bool
) -> None:
    """The likely mistake, both places, what is known and needed, and the movements of data around them."""
    page.heading("Where it goes wrong" if refuted else "Where it stops")
    if suspect.guess:
        page.fact("likely", Styled(suspect.guess, "bold"))
    add_place(page, "candidate", suspect.candidate, sources)
    _add_callers(page, suspect, full=full)
    if suspect.baseline is None:
        page.fact("baseline", Styled("nothing in the baseline is known to correspond to it", "faint"))
    else:
        add_place(page, "baseline", suspect.baseline, sources)
    _add_facts(page, "known", suspect.known)
    if suspect.needed:
        page.fact("needed", suspect.needed)
    _add_facts(page, "instead", suspect.derivable)
    if suspect.mended:
        page.fact("checked", "put right by itself, it makes the output right")
    _add_chain(page, suspect, full=full)
    if suspect.extent is not None:
        _add_extent(page, suspect.extent, full=full)


def _add_facts(page: Page, name: str, facts: Sequence[str]) -> None:
    for number, fact in enumerate(facts):
        page.fact("" if number else name, fact)


def _add_callers(page: Page, suspect: Suspect, *, full: bool) -> None:
    """Who called, the nearest first: the mistake may be that it is called at all."""
    frames = [site for site in reversed(suspect.candidate.stack) if site != suspect.candidate.site]
    for number, site in enumerate(frames if full else frames[:CALLERS_SHOWN]):
        page.fact("" if number else "called by", *site_pieces(site))


def _add_chain(page: Page, suspect: Suspect, *, full: bool) -> None:
    shown = suspect.chain if full else suspect.chain[:CHAIN_SHOWN]
    for number, place in enumerate(shown):
        page.fact("" if number else "around it", *place_pieces(place))
    hidden = len(suspect.chain) - len(shown)
    if hidden:
        page.fact("", Styled(f"and {hidden} more: -v or scalify explain shows them", "faint"))


def _add_extent(page: Page, extent: Extent, *, full: bool) -> None:
    """How much around the place was not proved, and between which lines it lies."""
    sizes = counted(extent.candidate_nodes, "operation"), counted(extent.baseline_nodes, "operation")
    page.fact("unproved", f"{sizes[0]} of the candidate for {sizes[1]} of the baseline")
    for name, places in (("from", extent.begins), ("to", extent.ends)):
        for place in places if full else places[:1]:
            page.fact("", f"{name} ", *place_pieces(place))
