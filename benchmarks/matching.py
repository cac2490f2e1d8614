"""How well are values paired and operators divided into regions, on programs with labelled tensors?

    python benchmarks/matching.py [--pairs FILE.py] [--only NAME]

FILE.py holds ``PAIRS``, builders of two callables that compute the same thing in two ways and label
tensors on the way, and ``collect()``, which gathers the labels of a run. Without --pairs: the twelve pairs
of shared/data/match_bench, where that folder lies beside the checkout, and those of
benchmarks/match_pairs. One fixed default; nothing is tuned per pair. Results: benchmarks/results/.
"""

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import torch
from matching_score import Score, judge
from results import write_result

from magneton.record.torch.capture import trace_callable

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data" / "match_bench" / "pairs.py"
OWN = (HERE / "match_pairs" / "earlier.py", HERE / "match_pairs" / "fresh.py")
# The published artifact, run on these 12 pairs and six more of their kind before this project began.
ARTIFACT = "published artifact, 18 pairs: label F1 .970, values right 541/614 = .881, sound 66/71, cut 68/150"
F1_GOAL, PRECISION_GOAL, CUT_GOAL = 1.0, 0.998, 0.98


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Sums over the pairs of one file."""

    pairs: int
    label_f1: float
    precision: float
    values: int
    cut_recall: float
    labels: int
    sound: int
    regions: int
    operators_paired: tuple[float, float]
    cpu_seconds: float

    @property
    def reached(self) -> bool:
        return (
            self.label_f1 >= F1_GOAL
            and self.precision >= PRECISION_GOAL
            and self.cut_recall >= CUT_GOAL
            and self.sound == self.regions
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--pairs", type=Path, action="append", help="a file of pairs; may be repeated")
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, object] = {}
    for place in asked.pairs or _present((SHARED, *OWN)):
        scores = judged(load(place), asked.only)
        if scores:
            print(table(place.stem, scores), end="\n\n")
            results[place.stem] = {"total": asdict(summed(scores)), "pairs": [asdict(s) for s in scores]}
    print(ARTIFACT)
    if not asked.pairs and not asked.only:
        origin = trace_callable(torch.relu, (torch.ones(4),)).origin
        print(f"written to {write_result('matching', results, origin).name}")


def load(place: Path) -> ModuleType:
    """The pairs of ``place``, which may import its neighbours."""
    spec = importlib.util.spec_from_file_location(f"pairs_of_{place.stem}", place)
    if spec is None or spec.loader is None or not place.exists():
        sys.exit(f"{place} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(place.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    if not (hasattr(module, "PAIRS") and hasattr(module, "collect")):
        sys.exit(f"{place} has no PAIRS or no collect()")
    return module


def judged(module: ModuleType, only: str) -> list[Score]:
    return [judge(name, build(), module.collect) for name, build in module.PAIRS.items() if only in str(name)]


def summed(scores: Sequence[Score]) -> Total:
    labels, found = sum(s.labels for s in scores), sum(s.found for s in scores)
    confused, wrong = sum(len(s.confused) for s in scores), sum(len(s.wrong) for s in scores)
    right, regions = sum(s.right for s in scores), sum(s.regions for s in scores)
    return Total(
        pairs=len(scores),
        label_f1=2 * found / max(1, labels + found + confused),
        precision=right / max(1, right + wrong),
        values=right + wrong,
        cut_recall=1 - sum(len(s.uncut) for s in scores) / max(1, labels),
        labels=labels,
        sound=regions - sum(len(s.unsound) for s in scores),
        regions=regions,
        operators_paired=(_share(scores, 0), _share(scores, 1)),
        cpu_seconds=sum(s.seconds for s in scores),
    )


def table(title: str, scores: Sequence[Score]) -> str:
    head = f"{title:34s} labels  cut   values   sound      operators paired    CPU-s"
    lines = [head, "-" * len(head)]
    for s in scores:
        values, cut = f"{s.right}/{s.right + len(s.wrong)}", f"{s.labels - len(s.uncut)}/{s.labels}"
        sound = f"{s.regions - len(s.unsound)}/{s.regions}"
        ops = "  ".join(f"{p}/{n}" for p, n in zip(s.paired, s.operators, strict=True))
        found = f"{s.found}/{s.labels}"
        lines.append(
            f"{s.name:34s} {found:>6s} {cut:>5s} {values:>8s} {sound:>7s} {ops:>21s} {s.seconds:8.2f}"
        )
        for kind in ("lost", "uncut", "confused", "wrong", "unsound"):
            lines += [f"    {kind}: {what}" for what in getattr(s, kind)]
    total = summed(scores)
    lines += [
        "-" * len(head),
        f"label F1 {total.label_f1:.3f}; values right {total.precision:.4f} of {total.values};"
        f" cut {total.cut_recall:.3f} of {total.labels}; sound {total.sound}/{total.regions};"
        f" operators paired {total.operators_paired[0]:.3f} {total.operators_paired[1]:.3f};"
        f" goals {'reached' if total.reached else 'MISSED'}",
    ]
    return "\n".join(lines)


def _present(places: Sequence[Path]) -> list[Path]:
    for place in places:
        if not place.exists():
            print(f"skipped: {place.name} does not lie beside this checkout", file=sys.stderr)
    return [place for place in places if place.exists()]


def _share(scores: Sequence[Score], side: int) -> float:
    return sum(s.paired[side] for s in scores) / max(1, sum(s.operators[side] for s in scores))


if __name__ == "__main__":
    main()
