"""Whether both sides computed the same: their declared outputs, compared element by element.

Matching aligns values by sketches, which are blind to the order of elements; only this certifies. A
saving on other work is no saving, so nothing is a finding unless the outputs agree.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from magneton.compare.model import OutputCheck, SameWork
from magneton.profile.continuation import FED
from magneton.profile.model import Profile
from magneton.workload import DType

TOLERANCES: dict[DType, float] = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}
SHOWN = 8  # differing places of an integer output


def check_same_work(baseline: Profile, candidate: Profile, tolerance: float | None = None) -> SameWork:
    """Compare outputs of equal names. ``tolerance`` is times the output's rms; by default, by the dtype."""
    allowed = TOLERANCES[baseline.origin.workload.dtype] if tolerance is None else tolerance
    names = sorted({*baseline.outputs, *candidate.outputs})
    checks = tuple(
        _check(name, baseline.outputs.get(name), candidate.outputs.get(name), allowed) for name in names
    )
    checks = _forgive_ties(checks)
    if not checks:
        return SameWork(status="unchecked", tolerance=allowed, outputs=())
    agree = all(check.problem is None for check in checks)
    return SameWork(status="same" if agree else "different", tolerance=allowed, outputs=checks)


def _check(
    name: str, one: NDArray[np.generic] | None, other: NDArray[np.generic] | None, tolerance: float
) -> OutputCheck:
    if (one is None or other is None) and name == FED:
        return OutputCheck(
            name=name, problem="an older recording does not say what decode was fed: record again"
        )
    if one is None or other is None:
        side = "candidate" if one is None else "baseline"
        return OutputCheck(name=name, problem=f"only the {side} has this output")
    if one.shape != other.shape:
        return OutputCheck(name=name, problem=f"shape {one.shape} against {other.shape}")
    if _discrete(one) != _discrete(other):
        return OutputCheck(name=name, problem=f"dtype {one.dtype} against {other.dtype}")
    if _discrete(one):
        return _check_discrete(name, one, other)
    return _check_continuous(name, _as_real(one), _as_real(other), tolerance)


def _discrete(array: NDArray[np.generic]) -> bool:
    return array.dtype.kind in "biu"


def _as_real(array: NDArray[np.generic]) -> NDArray[np.float64]:
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64)


def _check_discrete(name: str, one: NDArray[np.generic], other: NDArray[np.generic]) -> OutputCheck:
    places = np.argwhere(np.atleast_1d(one != other))
    shown = tuple(tuple(int(i) for i in place) for place in places[:SHOWN])
    problem = None
    if len(places):
        was, now = np.atleast_1d(one)[shown[0]], np.atleast_1d(other)[shown[0]]
        problem = f"{len(places)} of {one.size} differ, the first at {shown[0]}: {was} against {now}"
    gaps = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return OutputCheck(
        name=name,
        problem=problem,
        max_difference=float(gaps.max(initial=0.0)),
        allowed=0.0,
        differing=shown,
    )


def _check_continuous(
    name: str, one: NDArray[np.float64], other: NDArray[np.float64], tolerance: float
) -> OutputCheck:
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return OutputCheck(name=name, problem="infinities or NaNs stand in different places")
    gaps = np.abs(one - other, where=finite, out=np.zeros(one.shape))
    allowed = tolerance * max(_rms(one[finite]), _rms(other[finite]))
    largest = float(gaps.max(initial=0.0))
    problem = None
    if largest > allowed:
        place = tuple(int(i) for i in np.unravel_index(int(gaps.argmax()), gaps.shape))
        problem = f"differs by up to {largest:.3g} at {place}, where {allowed:.3g} is allowed"
    return OutputCheck(name=name, problem=problem, max_difference=largest, allowed=allowed)


def _rms(numbers: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.square(numbers).mean())) if numbers.size else 0.0


def _forgive_ties(checks: tuple[OutputCheck, ...]) -> tuple[OutputCheck, ...]:
    """Chosen tokens may differ where two logits tie: then the logits of their phase agree all the same."""
    agreeing = {check.name for check in checks if check.problem is None}
    return tuple(
        replace(check, problem=None, note=f"a tie ({check.problem}): the logits agree")
        if check.differing and agreeing & _logits_of(check.name)
        else check
        for check in checks
    )


def _logits_of(name: str) -> set[str]:
    """The outputs that certify chosen tokens: the logits, or what stands for large ones."""
    phase, _, output = name.rpartition(".")
    return {f"{phase}.logits", f"{phase}.logits.projection"} if output == "tokens" else set()
