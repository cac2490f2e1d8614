"""A few lines of source around a place, with the line itself marked."""

import textwrap
from collections.abc import Mapping

from scalify.ir.graph import Site
from scalify.report.page import Page, Styled
from scalify.report.result import place_key
from scalify.report.sources import around

MARK = "> "


def add_excerpt(page: Page, site: Site, sources: Mapping[str, str]) -> None:
    """The lines at hand, without the indent they share and without blank ones at either end."""
    if place_key(site) not in sources:
        return
    numbers = [each.line for each in around(site) if place_key(each) in sources]
    lines = textwrap.dedent("\n".join(sources[place_key(Site(site.file, line))] for line in numbers))
    shown = list(zip(numbers, lines.split("\n"), strict=True))
    while not shown[0][1].strip() and shown[0][0] != site.line:
        shown.pop(0)
    while not shown[-1][1].strip() and shown[-1][0] != site.line:
        shown.pop()
    width = len(str(shown[-1][0]))
    for number, line in shown:
        own = number == site.line
        lead = f"{MARK if own else ' ' * len(MARK)}{number:>{width}} | "
        page.quotation(Styled(lead, "place" if own else "faint"), Styled(line, "quoted" if own else "faint"))
