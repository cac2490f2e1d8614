"""Judge the matching of one pair of programs against what their labelled tensors really hold.

In: two callables that compute the same thing in two ways and label tensors on the way. Out: a ``Score``.
The judge knows the contents of every value that was recorded; the matcher knows sketches.

A pair of values is right if their labels say so; without labels, if they hold the same numbers up to
order. A label is *cut* if it lies on the boundary of a region, and a region is sound as ``soundness``
defines it.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from soundness import SideOf, sides_of, unsound
from torch import Tensor

from magneton.match import match
from magneton.match.model import Matching, ValuePair
from magneton.profile.model import Profile
from magneton.profile.sketches import Sketch
from magneton.record.torch.capture import trace_callable
from magneton.record.torch.sketching import sketch_tensor

STRICT = 1e-4  # of the rms: how far the largest difference of equal values may go
LOW_PRECISION = 1e-2  # pairs that allow more than this are judged by the rms of the difference

Numbers = NDArray[np.float64]
Collect = Callable[[], AbstractContextManager[dict[str, Tensor]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the matcher did with one pair of programs. Counts; ``seconds`` are of the CPU, matching alone."""

    name: str
    labels: int  # that both programs have
    found: int  # labels whose values are paired
    confused: tuple[str, ...]  # pairs of values with different labels, as "label != label"
    lost: tuple[str, ...]  # labels that were not paired
    uncut: tuple[str, ...]  # labels that lie on no boundary
    right: int  # pairs of values that hold the same
    wrong: tuple[str, ...]
    regions: int
    unsound: tuple[str, ...]
    operators: tuple[int, int]
    paired: tuple[int, int]  # operators in regions that have both sides
    seconds: float


@dataclass(slots=True)
class Recorded:
    """One side: what the matcher sees, and what it does not."""

    labels: Mapping[str, Tensor]
    profile: Profile
    contents: dict[int, Numbers] = field(default_factory=dict[int, Numbers])  # value -> its numbers, in order
    labelled: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])


def judge(name: str, pair: Mapping[str, Any], collect: Collect) -> Score:
    """Record both sides of ``pair``, match them, and hold the result against the contents."""
    tolerance = float(pair.get("tol") or STRICT)
    with torch.no_grad():
        baseline = recorded(pair["A"], pair["args"], collect)
        candidate = recorded(pair["B"], pair.get("argsB") or pair["args"], collect)
    began = time.process_time()
    matching = match(baseline.profile, candidate.profile)
    seconds = time.process_time() - began
    return scored(name, baseline, candidate, matching, tolerance, seconds)


def recorded(target: Callable[..., Any], args: Sequence[Any], collect: Collect) -> Recorded:
    """Run ``target`` for its labels, then as a recording does; each from the same state."""
    watched, given = deepcopy((target, args))
    with collect() as labels:
        watched(*given)
    kept: dict[bytes, Numbers] = {}

    def keep(tensor: Tensor, *, cap: int = 2**28, rearranged_from: Sketch | None = None) -> Sketch | None:
        sketch = sketch_tensor(tensor, cap=cap, rearranged_from=rearranged_from)
        if sketch is not None:
            kept.setdefault(
                _row((sketch.count, sketch.first), sketch.cos_sum, sketch.sin_sum), numbers(tensor)
            )
        return sketch

    profile = trace_callable(target, args, sketch=keep, with_drift=True)
    side = Recorded(labels=labels, profile=profile)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for label, tensor in labels.items():
        names[fingerprint(numbers(tensor))].add(label)
    sketches = profile.sketches
    for value in np.flatnonzero(sketches.known).tolist():
        kind = int(sketches.count[value]), int(sketches.first[value])
        row = _row(kind, sketches.cos_sum[value], sketches.sin_sum[value])
        side.contents[value] = kept[row]
        side.labelled[value] = frozenset(names.get(fingerprint(kept[row]), ()))
    return side


def scored(
    name: str, baseline: Recorded, candidate: Recorded, matching: Matching, tolerance: float, seconds: float
) -> Score:
    common = baseline.labels.keys() & candidate.labels.keys()
    found: set[str] = set()
    confused: set[str] = set()
    wrong: list[str] = []
    right = 0
    phases = dict.fromkeys(op.phase for op in (*baseline.profile.operators, *candidate.profile.operators))
    judged = [sides_of(baseline.profile, candidate.profile, matching, phase) for phase in phases]
    for x, y in value_pairs(judged, matching):
        labels_x, labels_y = baseline.labelled[x], candidate.labelled[y]
        found |= labels_x & labels_y
        apart = bool(labels_x and labels_y) and not labels_x & labels_y
        confused |= {f"{one} != {other}" for one in labels_x for other in labels_y if apart}
        alike = bool(labels_x & labels_y) or same(baseline.contents[x], candidate.contents[y], tolerance)
        if alike and not apart:
            right += 1
        else:
            wrong.append(f"{_name(baseline.profile, x)} / {_name(candidate.profile, y)}")
    for pair in (pair for pair in matching.pairs if pair.evidence == "composite"):
        whole, parts = _whole_and_parts(baseline, candidate, pair)
        if same(whole, parts, tolerance):
            right += 1
        else:
            wrong.append(f"composite {pair.baseline} / {pair.candidate}")
    regions = [region for region in matching.regions if region.baseline and region.candidate]
    failed = unsound(baseline.profile, candidate.profile, matching)
    return Score(
        name=name,
        labels=len(common),
        found=len(found & common),
        confused=tuple(sorted(confused)),
        lost=tuple(sorted(common - found)),
        uncut=tuple(sorted(common - _cut(baseline, candidate, judged, matching))),
        right=right,
        wrong=tuple(wrong),
        regions=len(regions),
        unsound=tuple(f"{_names(baseline.profile, region.baseline)}: {why}" for region, why in failed),
        operators=(len(baseline.profile.operators), len(candidate.profile.operators)),
        paired=(sum(len(r.baseline) for r in regions), sum(len(r.candidate) for r in regions)),
        seconds=seconds,
    )


def value_pairs(judged: Sequence[tuple[SideOf, SideOf]], matching: Matching) -> set[tuple[int, int]]:
    """All pairs of values that the matching takes for equal; it lists only one of each class."""
    claims = {
        index
        for index, pair in enumerate(matching.pairs)
        if pair.evidence not in ("output", "composite")  # by role, and by their parts
    }
    found: set[tuple[int, int]] = set()
    for sides in judged:
        known_x, known_y = (side.side.wiring.profile.sketches.known for side in sides)
        meant: defaultdict[int, list[int]] = defaultdict(list)
        for value, index in sides[1].token.items():
            meant[index].append(value)
        found |= {
            (x, y)
            for x, index in sides[0].token.items()
            for y in meant.get(index, ())
            if index in claims and known_x[x] and known_y[y]
        }
    return found


def same(one: Numbers, other: Numbers, tolerance: float) -> bool:
    """The same numbers up to order. At low precision the rms of the difference counts, else the largest."""
    if one.size != other.size or not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return False
    finite = np.isfinite(one)
    one, other = one[finite], other[finite]
    if not one.size:
        return True
    apart, rms = np.abs(one - other), float(np.sqrt(np.square(one).mean()))
    off = np.sqrt(np.square(apart).mean()) if tolerance > LOW_PRECISION else apart.max()
    return float(off) <= max(tolerance, STRICT) * (rms + 1e-12)


def numbers(tensor: Tensor) -> Numbers:
    """All elements in ascending order; a complex one counts as two."""
    tensor = tensor.detach()
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return np.sort(real.to(torch.float64).reshape(-1).numpy())


def fingerprint(ordered: Numbers) -> str:
    return f"{ordered.size} {hashlib.blake2b((ordered + 0.0).tobytes()).hexdigest()}"


def _row(
    kind: tuple[int, int], cos_sum: Sequence[float] | Numbers, sin_sum: Sequence[float] | Numbers
) -> bytes:
    """The same for one tensor and its sketch in the profile, and for no other content."""
    return np.array([*kind, *cos_sum, *sin_sum], dtype=np.float64).tobytes()


def _whole_and_parts(baseline: Recorded, candidate: Recorded, pair: ValuePair) -> tuple[Numbers, Numbers]:
    """What the two sides of a composite hold; the smaller one may lie among zeros on the other side."""
    one = np.concatenate([baseline.contents[value] for value in pair.baseline])
    other = np.concatenate([candidate.contents[value] for value in pair.candidate])
    room = max(one.size, other.size)
    return np.sort(np.append(one, np.zeros(room - one.size))), np.sort(
        np.append(other, np.zeros(room - other.size))
    )


def _cut(
    baseline: Recorded, candidate: Recorded, judged: Sequence[tuple[SideOf, SideOf]], matching: Matching
) -> set[str]:
    at_boundary = {k for region in matching.regions for k in (*region.produces, *region.consumes)}
    cut: set[str] = set()
    for side_x, side_y in judged:
        labels_x, labels_y = _labels_of(baseline, side_x.token), _labels_of(candidate, side_y.token)
        cut |= {label for k in at_boundary for label in labels_x[k] & labels_y[k]}
    return cut


def _labels_of(side: Recorded, token: Mapping[int, int]) -> defaultdict[int, set[str]]:
    labels: defaultdict[int, set[str]] = defaultdict(set)
    for value, index in token.items():
        labels[index] |= side.labelled.get(value, frozenset())
    return labels


def _name(profile: Profile, value: int) -> str:
    row = profile.values[value]
    maker = row.name or "source" if row.producer is None else profile.operators[row.producer].name
    return f"{maker}#{value}{list(row.shape)}"


def _names(profile: Profile, ops: Sequence[int]) -> str:
    return " ".join(profile.operators[op].name.removeprefix("aten.") for op in ops)
