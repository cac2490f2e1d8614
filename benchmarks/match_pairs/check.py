"""Is the ground truth of the pairs true? Prints one row a pair; exits with 1 if a label lies.

    python benchmarks/match_pairs/check.py [FILE ...]

For every pair: labels of one name are equal as multisets within the pair's tolerance, labels of different
names differ by more than three times that, and parts add up to their whole. Errors are in units of the rms:
for equality the largest over the sorted values, for difference their rms, so that either reading of a
tolerance agrees.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from math import inf
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

FOLDER = Path(__file__).parent
DEFAULT_TOLERANCE = 1e-4
DISTINCT = 3.0
ONE_VALUE = {("zero_init_blocks", "x", "y")}
"""Labels which name one value by design: those blocks add nothing."""

Labels = Mapping[str, Tensor]


def load(place: Path) -> ModuleType:
    spec = spec_from_file_location(place.stem, place)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{place} is no Python file")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sorted_values(*tensors: Tensor) -> Tensor:
    """All values in fp64, ascending; complex numbers as their two parts."""
    reals = (torch.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in tensors)
    return torch.cat([real.double().flatten() for real in reals]).sort()[0]


def errors(one: Tensor, other: Tensor) -> tuple[float, float]:
    """The largest and the rms difference of two ascending tensors, over their rms; infinite if they disagree
    in size or in what is not finite."""
    finite = one.isfinite()
    if one.shape != other.shape or not torch.equal(finite, other.isfinite()):
        return inf, inf
    if not finite.all():
        if not torch.equal(one[~finite].nan_to_num(0.5), other[~finite].nan_to_num(0.5)):
            return inf, inf
        one, other = one[finite], other[finite]
    difference = one - other
    scale = float(one.square().mean().sqrt()) + 1e-12
    return float(difference.abs().max()) / scale, float(difference.square().mean().sqrt()) / scale


def unequal(baseline: Labels, candidate: Labels) -> dict[str, float]:
    """The error of every label found on both sides."""
    common = baseline.keys() & candidate.keys()
    return {name: errors(sorted_values(baseline[name]), sorted_values(candidate[name]))[0] for name in common}


def distances(baseline: Labels, candidate: Labels) -> dict[tuple[str, str], float]:
    """How far any two labels of different names are apart, whatever side they are on."""
    sides = [{name: sorted_values(label) for name, label in side.items()} for side in (baseline, candidate)]
    everything = [(name, value) for side in sides for name, value in side.items()]
    return {
        (name, other_name): errors(value, other)[1]
        for (name, value), (other_name, other) in combinations(everything, 2)
        if name != other_name and value.shape == other.shape
    }


def part_errors(baseline: Labels, candidate: Labels, parts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The error of every whole against its parts, each taken from wherever it is labelled."""
    wholes, pieces = {**candidate, **baseline}, {**baseline, **candidate}
    return {
        whole: errors(sorted_values(wholes[whole]), sorted_values(*(pieces[name] for name in names)))[0]
        for whole, names in parts.items()
    }


def check(module: ModuleType, name: str) -> list[str]:
    """Print the row of one pair; return what is wrong with it."""
    start = time.perf_counter()
    pair = module.PAIRS[name]()
    tolerance = pair.get("tol", DEFAULT_TOLERANCE)
    with module.collect() as baseline:
        pair["A"](*pair["args"])
    with module.collect() as candidate:
        pair["B"](*pair.get("argsB", pair["args"]))
    spent_s = time.perf_counter() - start
    equal, apart = unequal(baseline, candidate), distances(baseline, candidate)
    whole = part_errors(baseline, candidate, pair.get("parts", {}))
    largest, nearest = max(equal.values(), default=inf), min(apart.values(), default=inf)
    size = f"{min(t.numel() for t in baseline.values())}..{max(t.numel() for t in baseline.values())}"
    print(
        f"{name:<34} {len(baseline):>3} {len(candidate):>3} {len(equal):>3} {size:>13} {tolerance:8.0e}"
        f" {largest:8.1e} {nearest:8.1e} {max(whole.values(), default=0.0):8.1e} {spent_s:6.2f}"
    )
    wrong = [f"{label} differs by {error:.1e}" for label, error in equal.items() if error > tolerance]
    wrong += [
        f"{one} = {other} within {error:.1e}"
        for (one, other), error in apart.items()
        if error <= DISTINCT * tolerance and (name, *sorted((one, other))) not in ONE_VALUE
    ]
    wrong += [
        f"parts of {label} differ by {error:.1e}" for label, error in whole.items() if error > tolerance
    ]
    return wrong if equal else [*wrong, "no label is on both sides"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("files", nargs="*", type=Path, default=[FOLDER / "earlier.py", FOLDER / "fresh.py"])
    asked = parser.parse_args()
    sys.path.insert(0, str(FOLDER.parent))
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # the tensors are small
    lies = 0
    for place in asked.files:
        module = load(place)
        print(
            f"{place.name + ': ' + str(len(module.PAIRS)) + ' pairs':<34}   A   B both      elements", end=""
        )
        print("      tol    error   others    parts      s")
        for name in module.PAIRS:
            wrong = check(module, name)
            lies += len(wrong)
            print("".join(f"    WRONG {line}\n" for line in wrong), end="")
    return 1 if lies else 0


if __name__ == "__main__":
    sys.exit(main())
