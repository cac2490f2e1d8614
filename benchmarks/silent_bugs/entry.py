"""An entry of the corpus: a bug planted in a host model, as module code, beside the same code without it.

Each file of ``benchmarks/silent_bugs/corpus`` holds one ``ENTRY``. Its builds are what ``scalify capture``
takes: they return ``(module_or_function, args)``, on a mesh from ``(rank, groups)``. The line that a report
should name first ends in the comment ``# planted``, in the entry's own file or in that of its host. Modules
are imported as ``silent_bugs.entry``, from the folder ``benchmarks``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Literal

from scalify.ir.mesh import SINGLE, Mesh

FOLDER = Path(__file__).parent / "corpus"
MARK = "# planted"

Build = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A baseline, a candidate with the bug and one without.

    ``buggy`` is None in a control pair, ``fixed`` where there is no right version. ``relations``
    is the content of a relations file, ``ops`` a file of definitions of custom operations (``--ops``).
    ``expected`` says what is to become of the buggy one: refuted; or proved over the reals and named by the
    precision check; or refused, for an operation is given operands that its definition is not made for.
    ``backward`` captures gradients too (``scalify capture --backward``).
    """

    baseline: Build
    buggy: Build | None
    fixed: Build | None
    mesh: Mesh = SINGLE
    backward: bool = False
    relations: str = ""
    ops: Path | None = None
    expected: Literal["refuted", "precision", "refused"] = "refuted"
    lines_in: tuple[Path, ...] = field(default=())  # files besides the entry's own that bear the mark


def entry_names() -> tuple[str, ...]:
    """All entries, by the names of their files."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.py")))


def load_entry(name: str) -> Entry:
    """The entry in a file."""
    entry = _module(FOLDER / f"{name}.py").ENTRY
    assert isinstance(entry, Entry)
    return entry


def planted_lines(name: str) -> frozenset[tuple[str, int]]:
    """File and number of the lines that a report should name first."""
    files = (FOLDER / f"{name}.py", *load_entry(name).lines_in)
    return frozenset(
        (str(file), number)
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if line.rstrip().endswith(MARK)
    )


def _module(file: Path) -> ModuleType:
    spec = spec_from_file_location(f"corpus_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
