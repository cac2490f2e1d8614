"""Source files written for a test, and the frames a profile would have of them."""

from pathlib import Path
from textwrap import dedent

from magneton.diagnose.source import Located, Sources
from magneton.profile.model import Frame


class Planted:
    """One file, ``planted.py``, below ``folder``. A place in it is named by a part of its line."""

    def __init__(self, folder: Path, text: str) -> None:
        written = dedent(text).strip() + "\n"
        self.file = folder / "planted.py"
        self.file.write_text(written, encoding="utf-8")
        self.lines = written.splitlines()
        self.sources = Sources([folder])

    def line(self, part: str) -> int:
        found = [place for place, line in enumerate(self.lines, start=1) if part in line]
        assert len(found) == 1, f"{part!r} is on lines {found}"
        return found[0]

    def frame(self, function: str, part: str) -> Frame:
        line = self.line(part)
        return Frame(file="planted.py", line=line, function=function, code=self.lines[line - 1].strip())

    def locate(self, function: str, part: str) -> Located:
        located = self.sources.locate(self.frame(function, part))
        assert isinstance(located, Located), located
        return located
