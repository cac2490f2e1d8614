"""Known bugs in host models, as module code: refuted, and where? Are they proved once mended?

    PYTHONPATH=benchmarks python benchmarks/silent_bugs/run.py [NAME...]

Every entry of ``corpus``: baseline, buggy and fixed program are captured and kept in files, both pairs are
verified. A witness is written to a file and run again from there. ``site`` is the line that the report names
first; ``site_found`` says whether it is planted, ``stack_found`` whether any line of its call stack is.
``nodes`` counts the smaller one of the two programs; no host has fewer than 100. Times are CPU-seconds of one
verification, from files to verdict. Results go to benchmarks/results/silent_bugs.json, the table to
docs/silent-bugs.md; with names, those of other entries stay as they are. Exits with 1 if a bug was proved or
something right was refuted.
"""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from silent_bugs.entry import Build, Entry, entry_names, load_entry, planted_lines

from scalify.capture import captured
from scalify.ir.graph import Graph, Site
from scalify.ir.mesh import SINGLE, Mesh
from scalify.ir.text import save
from scalify.refute.budget import Search
from scalify.refute.replay import replayed
from scalify.report.summary import answered
from scalify.report.witness_file import keep, load
from scalify.verdict import Place, Proved, Refuted, Unknown
from scalify.verification import Verification, problem_of, verification
from scalify.worker.protocol import Request

RESULT = Path(__file__).parents[1] / "results" / "silent_bugs.json"
DOCS = Path(__file__).parents[2] / "docs" / "silent-bugs.md"
LEAST_NODES = 100
SHOWN = ("entry", "version", "verdict", "as_expected", "site_found", "stack_found", "replayed", "cpu_s")
BEGIN, END = "<!-- table: benchmarks/silent_bugs/run.py -->\n", "<!-- end of table -->\n"

Row = Mapping[str, object]


def main() -> None:
    """Run, print and write."""
    if not sys.argv[1:]:
        _write({})
    for name in sys.argv[1:] or entry_names():
        rows = rows_of(name)
        found = {**_before(), name: rows}
        for row in rows:
            print(*(row[key] for key in SHOWN), row["site"] or "", flush=True)
        _write(found)
    figures = summary(_in_order(_before()))
    print(*(f"{name}: {value}" for name, value in figures.items()), sep="\n")
    sys.exit(1 if figures["wrong"] else 0)


def _in_order(found: Mapping[str, Sequence[Row]]) -> list[Row]:
    return [row for name in sorted(found) for row in found[name]]


def _write(found: Mapping[str, Sequence[Row]]) -> None:
    """Entry by entry: a run that is stopped leaves what it has found, and two may share the work."""
    rows = _in_order(found)
    content = {"made_by": _made_by(), **summary(rows), "pairs": rows}
    partial = RESULT.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    partial.replace(RESULT)
    DOCS.write_text(with_table(DOCS.read_text(encoding="utf-8"), rows), encoding="utf-8")


def _before() -> dict[str, tuple[Row, ...]]:
    """The rows that are in the file, of entries that there still are."""
    rows: list[Row] = json.loads(RESULT.read_text(encoding="utf-8"))["pairs"] if RESULT.exists() else []
    return {name: tuple(row for row in rows if row["entry"] == name) for name in entry_names()}


def rows_of(name: str) -> tuple[Row, ...]:
    """What became of the buggy and of the fixed version of an entry."""
    entry = load_entry(name)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        baseline = _captured(entry, entry.baseline, SINGLE, place / "baseline.scg")
        builds = {"buggy": entry.buggy, "fixed": entry.fixed}
        made = [(which, build) for which, build in builds.items() if build is not None]
        return tuple(_row(name, entry, which, build, baseline, place) for which, build in made)


def _captured(entry: Entry, build: Build, mesh: Mesh, file: Path) -> Graph:
    graph = captured(build, name=file.stem, mesh=mesh, backward=entry.backward)
    save(graph, file)
    return graph


def _row(name: str, entry: Entry, which: str, build: Build, baseline: Graph, folder: Path) -> Row:
    start_s = process_time()
    file = folder / f"{which}.scg"
    candidate = _captured(entry, build, entry.mesh, file)
    captured_s = process_time()
    relations = None
    if entry.relations:
        relations = folder / "relations.toml"
        relations.write_text(entry.relations, encoding="utf-8")
    paths = str(folder / "baseline.scg"), str(file)
    done = verification(*paths, relations=relations, ops=entry.ops, search=Search())
    done_s = process_time()
    place = _first_place(entry, done)
    lines = planted_lines(name)
    nodes = min(len(baseline.nodes), len(candidate.nodes))
    assert nodes >= LEAST_NODES, f"{name}: a host of {nodes} nodes"
    return {
        "entry": name,
        "version": which if entry.buggy is not None else "control",
        "expected": "proved" if which == "fixed" else entry.expected,
        "verdict": type(done.verdict).__name__,
        "as_expected": _is_as_expected(entry, which, done),
        "site": _line(place),
        "site_found": None if which == "fixed" else bool(place and place.site and _at(place.site) in lines),
        "stack_found": None if which == "fixed" else _is_planted(place, lines),
        "replayed": _is_replayed(done, paths, relations, entry, folder),
        "guess": ""
        if isinstance(done.verdict, Proved) or not done.verdict.suspect
        else done.verdict.suspect.guess,
        "nodes": nodes,
        "ranks": entry.mesh.size,
        "capture_cpu_s": round(captured_s - start_s, 2),
        "cpu_s": round(done_s - captured_s, 2),
    }


def _is_as_expected(entry: Entry, which: str, done: Verification) -> bool:
    if which == "fixed":
        return isinstance(done.verdict, Proved)
    if entry.expected == "precision":
        return isinstance(done.verdict, Proved) and bool(done.precision)
    if entry.expected == "refused":
        return isinstance(done.verdict, Unknown) and bool(done.problem.refused)
    return isinstance(done.verdict, Refuted)


def _first_place(entry: Entry, done: Verification) -> Place | None:
    if entry.expected == "precision" and done.precision:
        return done.precision[0].candidate
    if isinstance(done.verdict, Proved) or done.verdict.suspect is None:
        return None
    return done.verdict.suspect.candidate


def _is_planted(place: Place | None, lines: frozenset[tuple[str, int]]) -> bool:
    if place is None:
        return False
    sites = (*place.stack, *((place.site,) if place.site else ()))
    return any((site.file, site.line) in lines for site in sites)


def _at(site: Site) -> tuple[str, int]:
    return site.file, site.line


def _line(place: Place | None) -> str | None:
    if place is None or place.site is None:
        return None
    return f"{Path(place.site.file).name}:{place.site.line}"


def _is_replayed(
    done: Verification, paths: tuple[str, str], relations: Path | None, entry: Entry, folder: Path
) -> bool | None:
    """Whether both programs, read from their files, differ on the witness that is read from its own."""
    if not isinstance(done.verdict, Refuted):
        return None
    file = folder / "found.witness.json"
    request = Request(
        baseline=paths[:1],
        candidate=paths[1:],
        relations=relations and str(relations),
        partition=True,
        memo=True,
        duration_s=60.0,
        memory_bytes=1 << 32,
    )
    keep(answered(done, paths[:1], paths[1:]), request, file)
    problem = problem_of(*paths, relations=relations, ops=entry.ops)
    return isinstance(replayed(problem, load(file).witness), Refuted)


def summary(rows: Sequence[Row]) -> Mapping[str, int]:
    """The figures that matter."""
    buggy = [row for row in rows if row["version"] == "buggy"]
    right = [row for row in rows if row["version"] != "buggy"]
    return {
        "bugs": len(buggy),
        "refuted": sum(row["verdict"] == "Refuted" for row in buggy),
        "named_by_precision": sum(_became(row, "precision") for row in buggy),
        "refused_by_definition": sum(_became(row, "refused") for row in buggy),
        "witnesses_replayed": sum(bool(row["replayed"]) for row in buggy),
        "sites_found": sum(bool(row["site_found"]) for row in buggy),
        "stacks_found": sum(bool(row["stack_found"]) for row in buggy),
        "fixed": sum(row["version"] == "fixed" for row in right),
        "fixed_proved": sum(row["version"] == "fixed" and row["verdict"] == "Proved" for row in right),
        "controls": sum(row["version"] == "control" for row in right),
        "controls_proved": sum(row["version"] == "control" and row["verdict"] == "Proved" for row in right),
        "wrong": sum(row["verdict"] == "Proved" and not row["as_expected"] for row in buggy)
        + sum(row["verdict"] == "Refuted" for row in right),
    }


def _became(row: Row, expected: str) -> bool:
    return row["expected"] == expected and bool(row["as_expected"])


def table(rows: Sequence[Row]) -> str:
    """A line for every entry."""
    lines = [
        "| entry | with the bug | witness | line named first | in its stack | without it | nodes | seconds |",
        "|---" * 8 + "|",
    ]
    for name in dict.fromkeys(str(row["entry"]) for row in rows):
        own = {str(row["version"]): row for row in rows if row["entry"] == name}
        bug, right = own.get("buggy"), own.get("fixed", own.get("control"))
        cells = (
            name,
            *(_bug_cells(bug) if bug else ("",) * 4),
            str(right["verdict"]) if right else "",
            str(max(int(str(row["nodes"])) for row in own.values())),
            " / ".join(str(row["cpu_s"]) for row in own.values()),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _bug_cells(row: Row) -> tuple[str, ...]:
    how = {"precision": ", precision named", "refused": ", definition refused"}.get(str(row["expected"]), "")
    return (
        f"{row['verdict']}{how if row['as_expected'] else ''}",
        "" if row["replayed"] is None else "replayed" if row["replayed"] else "not replayed",
        "planted" if row["site_found"] else str(row["site"] or "none"),
        "planted" if row["stack_found"] else "no",
    )


def with_table(text: str, rows: Sequence[Row]) -> str:
    """A page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{in_a_sentence(rows)}\n{table(rows)}{END}{after}"


def in_a_sentence(rows: Sequence[Row]) -> str:
    """The figures, for a page."""
    of = summary(rows)
    return (
        f"Of {of['bugs']} bugs {of['refuted']} are refuted, and {of['witnesses_replayed']} of the witnesses "
        f"are replayed from their files; {of['named_by_precision']} is equal over the reals and named by the "
        f"check of precision; {of['refused_by_definition']} is refused by the definition of its kernel. The "
        f"line named first is the planted one in {of['sites_found']}; in {of['stacks_found']} it is on the "
        f"call stack. Mended, {of['fixed_proved']} of {of['fixed']} are proved, and {of['controls_proved']} "
        f"of {of['controls']} control pairs.\n"
    )


def _made_by() -> Mapping[str, object]:
    names = ("torch", "numpy", "egglog")
    return {
        "script": "benchmarks/silent_bugs/run.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
    }


if __name__ == "__main__":
    main()
