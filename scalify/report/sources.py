"""Lines of source text, to show beside a place in a program.

A graph names files, and it may name any: only what is plainly source is read, only regular files, bounded.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from scalify.ir.graph import Site
from scalify.report.result import place_key

SUFFIXES = frozenset({".py"})
MAX_FILE_BYTES = 1 << 22
MAX_LINE_CHARACTERS = 400
AROUND = 2
"""So many lines before and after one that is blamed say what it stands in."""


def around(site: Site) -> Iterable[Site]:
    """The line of a site, and its neighbours."""
    first = max(site.line - AROUND, 1)
    return [Site(site.file, line) for line in range(first, site.line + AROUND + 1)]


def source_lines(sites: Iterable[Site]) -> Mapping[str, str]:
    """The text at each site whose file is at hand, with its indent, by ``place_key``."""
    files: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for site in sites:
        if site.file not in files:
            files[site.file] = _lines(site.file)
        lines = files[site.file]
        if 0 < site.line <= len(lines):
            found[place_key(site)] = lines[site.line - 1].expandtabs(4).rstrip()[:MAX_LINE_CHARACTERS]
    return found


def _lines(name: str) -> list[str]:
    if Path(name).suffix not in SUFFIXES or "\0" in name:
        return []
    try:
        with open(name, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return []
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        return []
    return content.decode("utf-8", "replace").splitlines() if len(content) <= MAX_FILE_BYTES else []


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that is called like a source file does not keep us."""
    return os.open(path, flags | os.O_NONBLOCK)
