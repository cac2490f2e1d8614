"""Rows of judged mutants by program, kept in a file so that a run can be continued, and what they come to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from model_mutants import CLASSES
from mutation.judging import Judged

RESULT = Path(__file__).parents[1] / "results" / "mutants.json"
DOCS = Path(__file__).parents[2] / "docs" / "mutants.md"
BEGIN, END = "<!-- table: benchmarks/mutants.py -->\n", "<!-- end of table -->\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A program and its mutants; one that is not proved without a mistake has none, for they tell nothing."""

    nodes: int
    proved: bool
    rows: tuple[Judged, ...] = ()


Results = Mapping[str, Tried]


def read() -> Results:
    """What was written last; nothing if nothing was."""
    if not RESULT.is_file():
        return {}
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    return {
        name: Tried(
            nodes=tried["nodes"],
            proved=tried["proved"],
            rows=tuple(Judged(**row) for row in tried["rows"]),
        )
        for name, tried in content["programs"].items()
    }


def write(results: Results, made_by: Mapping[str, object], argued: Mapping[str, str]) -> None:
    """The file and the table in the documentation."""
    found = rows(results)
    content = {
        "made_by": {**made_by, "verifying_cpu_s": round(sum(one.cpu_s for one in found), 1)},
        "all": summary(found, argued),
        "by_class": {kind: summary(of_class(found, kind), argued) for kind in CLASSES},
        "by_program": {name: summary(tried.rows, argued) for name, tried in results.items() if tried.proved},
        "left_out": [name for name, tried in results.items() if not tried.proved],
        "programs": {
            name: {"nodes": tried.nodes, "proved": tried.proved, "rows": [one.name for one in tried.rows]}
            for name, tried in results.items()
        },
    }
    text = json.dumps(content, indent=1)
    for one in found:  # a line for each
        text = text.replace(json.dumps(one.name), json.dumps(asdict(one)), 1)
    RESULT.write_text(text + "\n", encoding="utf-8")
    DOCS.write_text(with_table(DOCS.read_text(encoding="utf-8"), results, argued), encoding="utf-8")


def rows(results: Results) -> tuple[Judged, ...]:
    """All mutants."""
    return tuple(one for tried in results.values() for one in tried.rows)


def of_class(found: Sequence[Judged], kind: str) -> tuple[Judged, ...]:
    """Those of one class."""
    return tuple(one for one in found if one.kind == kind)


def is_equivalent(one: Judged, argued: Mapping[str, str]) -> bool:
    """Whether a mutant is no mistake: argued, and no draw against it."""
    return one.name in argued and one.agrees is True


def summary(found: Sequence[Judged], argued: Mapping[str, str]) -> dict[str, object]:
    """The figures of some mutants."""
    wrong = [one for one in found if not is_equivalent(one, argued)]
    refuted = [one for one in wrong if one.outcome == "refuted"]
    exact = sum(one.named == "exactly" for one in refuted)
    return {
        "mutants": len(found),
        "equivalent": len(found) - len(wrong),
        "wrong": len(wrong),
        "refuted": len(refuted),
        "named_exactly": exact,
        "named_through_views": exact + sum(one.named == "through views" for one in refuted),
        "unknown": sum(one.outcome == "unknown" for one in wrong),
        "proved": sum(one.outcome == "proved" for one in wrong),
        "median_cpu_s": round(median(one.cpu_s for one in found), 2) if found else None,
    }


def errors(results: Results, argued: Mapping[str, str]) -> list[str]:
    """What must not be: a wrong program proved, a right one refuted, an argument without a mutant."""
    found = rows(results)
    names = {one.name for one in found}
    unargued = "nobody argues why it is right"
    return [
        *(
            f"{one.name}: proved, but {unargued if one.agrees else 'it differs'}"
            for one in found
            if one.outcome == "proved" and not is_equivalent(one, argued)
        ),
        *(f"{one.name}: argued to be right, but it differs" for one in found if _is_misargued(one, argued)),
        *(f"{name}: argued, but not drawn" for name in argued if name not in names and _is_of(results, name)),
    ]


def _is_misargued(one: Judged, argued: Mapping[str, str]) -> bool:
    return one.name in argued and one.agrees is not True and one.outcome != "proved"


def _is_of(results: Results, name: str) -> bool:
    return any(name.startswith(f"{program}/") for program in results)


def table(results: Results, argued: Mapping[str, str]) -> str:
    """A line for each program and for each class."""
    found = rows(results)
    parts = [
        *((name, summary(tried.rows, argued)) for name, tried in results.items() if tried.proved),
        ("**all programs**", summary(found, argued)),
        *((kind.replace("_", " "), summary(of_class(found, kind), argued)) for kind in CLASSES),
    ]
    columns = tuple(parts[0][1])
    heads = (column.replace("_", " ") for column in columns)
    lines = [f"| | {' | '.join(heads)} |", f"|---{'|---:' * len(columns)}|"]
    for name, figures in parts:
        lines.append(f"| {name} | {' | '.join(str(figures[column]) for column in columns)} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, results: Results, argued: Mapping[str, str]) -> str:
    """A page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table(results, argued)}{END}{after}"
