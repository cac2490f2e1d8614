"""What the user named as one side: a file, files, a folder of them, or a pattern."""

import re
from collections.abc import Sequence
from glob import has_magic
from pathlib import Path

from scalify.errors import InvalidGraph

_NUMBER = re.compile(r"(\d+)")


def side_files(named: Sequence[str]) -> tuple[str, ...]:
    """The files of one side, those of a folder or pattern in the order of the numbers in their names."""
    return tuple(file for name in named for file in _files(name))


def _files(name: str) -> Sequence[str]:
    if Path(name).is_dir():
        found = [
            str(path) for path in Path(name).iterdir() if path.is_file() and not path.name.startswith(".")
        ]
        what = "the folder holds no file"
    elif has_magic(name) and not Path(name).exists():
        pattern = Path(name)
        root = Path(pattern.anchor)
        found = [str(path) for path in root.glob(str(pattern.relative_to(root))) if path.is_file()]
        what = "no file fits the pattern"
    else:
        return (name,)
    if not found:
        raise InvalidGraph(f"{name}: {what}", hint="name a graph, or one graph for every rank")
    return sorted(found, key=_by_numbers)


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """``rank10`` after ``rank2``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(name)]
