"""A node as people look for it: what it is, where it stands, and the line that made it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from scalify.ir.graph import Site
from scalify.report.excerpt import add_excerpt
from scalify.report.page import Page, Piece, Styled
from scalify.verdict import Place

_PACKAGES = ("site-packages/", "dist-packages/")


def add_place(page: Page, name: str, place: Place, sources: Mapping[str, str]) -> None:
    """``all_reduce %add.3 in layers.0.mlp``, its line below, and the lines around it below that."""
    scope = f" in {place.scope}" if place.scope else ""
    page.fact(name, Styled(place.op, "bold"), f" %{place.node}{scope}")
    if place.site is None:
        page.fact("", Styled("no line of source is known", "faint"))
        return
    page.fact("", *site_pieces(place.site))
    add_excerpt(page, place.site, sources)


def place_pieces(place: Place) -> Iterator[Piece]:
    """The same on one line, without the source's text."""
    yield f"{place.op} %{place.node}"
    if place.site is not None:
        yield "  "
        yield from site_pieces(place.site)


def site_pieces(site: Site) -> Iterator[Piece]:
    """``llama.py:212 in forward``."""
    yield Styled(f"{short_file(site.file)}:{site.line}", "place")
    if site.function:
        yield f" in {site.function}"


def short_file(file: str) -> str:
    """What follows ``site-packages``; of a user's own file, the path from here, if it lies below."""
    for folder in _PACKAGES:
        if folder in file:
            return file.rpartition(folder)[2]
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
