"""A witness in a file: what is needed to run both programs on it again, and to see whether they still differ.

Long inputs are not in it: they follow from the draw (``scalify.refute.draw``), and their digests say whether
they came out as they were. Files from elsewhere are read as strictly as results are; nothing in them is run.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from scalify.report.codec import document, plain
from scalify.report.result import File, Result
from scalify.report.store import Format, loaded, written
from scalify.verdict import Witness
from scalify.worker.protocol import Request

SCHEMA = "scalify.witness"
VERSION = 1
MAX_FILE_BYTES = 1 << 24
_HOW = "`scalify verify` writes one where it refutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessFile:
    """Both programs as they were named, what was stated of their inputs, and the witness.

    ``relations`` is the text of a relations file, ``definitions`` are files of graphs by the operations they
    define. ``needs_ops`` says that others were defined by Python code, which is never run for being named in
    a file: whoever replays gives it again.
    """

    scalify: str
    baseline: tuple[File, ...]
    candidate: tuple[File, ...]
    relations: str | None
    definitions: tuple[tuple[str, str], ...]
    needs_ops: bool = False
    witness: Witness


def keep(result: Result, request: Request, path: Path) -> Result:
    """Write the witness of a refutation, and say in the result where it is."""
    if result.witness is None:
        raise ValueError("only what is refuted has a witness")
    content = WitnessFile(
        scalify=result.scalify,
        baseline=result.baseline.files,
        candidate=result.candidate.files,
        relations=None if request.relations is None else Path(request.relations).read_text(encoding="utf-8"),
        definitions=request.definitions,
        needs_ops=request.ops is not None,
        witness=result.witness,
    )
    save(content, path)
    return replace(result, witness_file=str(path))


def save(content: WitnessFile, path: Path) -> None:
    """Write it, whole or not at all."""
    written(document({"schema": SCHEMA, "version": VERSION, **plain(content)}, indent=2), path)


def load(path: Path) -> WitnessFile:
    """The witness in a file."""
    return loaded(WitnessFile, path, Format(SCHEMA, VERSION, MAX_FILE_BYTES, _HOW))
