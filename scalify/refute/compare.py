"""Outputs of both programs, element by element, in the layouts in which they may make each other up.

In: what both computed, and how far rounding may have moved it. Out: the elements that differ by more than
that. An element counts only where the baseline has a finite value. Where the candidate has none, that is a
difference if nothing in it overflowed: it divides zero by zero, or takes infinity from infinity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.ops.spec import Array
from scalify.refute.place import places, read
from scalify.relate.model import OutputRelation
from scalify.verdict import Difference, OutputDifference

NO_VALUE = "no value"
LARGEST_DENOMINATOR = 64
ALIKE = 2.0**-24
SURE = 2.0**-10
TINY = 2.0**-20
"""The baseline's value must be as sure as that where the candidate has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One pair of outputs in one layout, elements as on the candidate's ranks.

    ``apart`` is where they differ, ``nothing`` where for having no value only the baseline has one; ``where``
    is the index of each element in the baseline's tensor. The relation has the one layout that was chosen.
    """

    relation: OutputRelation
    expected: Array
    found: Array
    uncertainty: Array
    apart: Array
    nothing: Array
    counted: int
    where: tuple[Array, ...]

    @property
    def differing(self) -> int:
        """How many elements differ."""
        return int(self.apart.sum())


Bounds = Mapping[str, Sequence[Array]]


def compared(
    relation: OutputRelation,
    outputs: tuple[Mapping[str, PerRank], Mapping[str, PerRank]],
    bounds: tuple[Bounds, Bounds] | None,
    *,
    overflowed: bool,
) -> Compared:
    """The pair in the layout in which the fewest elements differ; without bounds, by a guess at rounding."""
    choices = [_in(relation, number, outputs, bounds, overflowed) for number in range(len(relation.choices))]
    return min(choices, key=lambda each: each.differing)


def _in(
    relation: OutputRelation,
    choice: int,
    outputs: tuple[Mapping[str, PerRank], Mapping[str, PerRank]],
    bounds: tuple[Bounds, Bounds] | None,
    overflowed: bool,
) -> Compared:
    index = relation.choices[choice][1]
    given = np.stack(outputs[0][relation.baseline])
    found = np.stack(outputs[1][relation.candidate])
    expected = read(index, given)
    if bounds is None:
        uncertainty = _guessed(expected, found)
    else:
        uncertainty = read(index, np.stack(bounds[0][relation.baseline])) + np.stack(
            bounds[1][relation.candidate]
        )
    where = places(index)
    if found.dtype.kind == "c" or expected.dtype.kind == "c":
        expected, found = _parts(expected), _parts(found)
        uncertainty = np.stack([uncertainty, uncertainty], axis=-1)
        where = (*(each[..., None] for each in where), np.arange(2).reshape((1,) * (found.ndim - 1) + (2,)))
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    counted = np.isfinite(expected)
    has_value = np.isfinite(found)
    with np.errstate(all="ignore"):
        apart = counted & has_value & (np.abs(found - expected) > uncertainty)
    nothing = counted & ~has_value & (uncertainty <= SURE * np.abs(expected) + TINY) & (not overflowed)
    return Compared(
        relation=replace(relation, choices=(relation.choices[choice],)),
        expected=expected,
        found=found,
        uncertainty=uncertainty,
        apart=apart | nothing,
        nothing=nothing,
        counted=int(counted.sum()),
        where=where,
    )


def confirmed(one: Compared, other: Compared) -> Compared:
    """What has no value on one draw, and none on another where the baseline has one."""
    nothing = one.nothing & ~(np.isfinite(other.expected) & np.isfinite(other.found))
    return replace(one, nothing=nothing, apart=one.apart & (nothing | ~one.nothing))


def _guessed(expected: Array, found: Array) -> Array:
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    exact = expected.dtype.kind not in "fc" and found.dtype.kind not in "fc"
    return np.full(expected.shape, 0.0 if exact else 1e-9 * largest + 1e-300)


def _parts(values: Array) -> Array:
    return np.stack([np.real(values), np.imag(values)], axis=-1)


def difference(one: Compared) -> Difference:
    """The element that differs the most."""
    with np.errstate(all="ignore"):
        gap = np.where(np.isfinite(one.found), np.abs(one.found - one.expected), np.inf)
    gap = np.where(one.apart, gap, -1.0)
    place = tuple(int(each) for each in np.unravel_index(int(gap.argmax()), gap.shape))
    found = float(one.found[place])
    where = tuple(int(np.broadcast_to(each, gap.shape)[place]) for each in one.where)
    return Difference(
        baseline=one.relation.baseline,
        candidate=one.relation.candidate,
        rank=place[0],
        index=place[1:],
        baseline_index=where[1:],
        expected=float(one.expected[place]),
        found=found if np.isfinite(found) else None,
        uncertainty=float(one.uncertainty[place]) if np.isfinite(one.uncertainty[place]) else 0.0,
    )


def summary(one: Compared) -> OutputDifference:
    """How many elements differ, and what they have in common."""
    return OutputDifference(
        baseline=one.relation.baseline,
        candidate=one.relation.candidate,
        differing=one.differing,
        compared=one.counted,
        pattern=_pattern(one),
    )


def _pattern(one: Compared) -> str:
    expected, found = one.expected[one.apart], one.found[one.apart]
    if not np.isfinite(found).any():
        return NO_VALUE
    if not np.isfinite(found).all() or one.differing < 2:
        return ""
    if not found.any():
        return "zero"
    if expected.all() and _alike(found / expected):
        return f"{_number(float(np.median(found / expected)))} times the baseline's"
    if _alike(found - expected):
        return f"the baseline's plus {_number(float(np.median(found - expected)))}"
    largest = float(np.abs(expected).max())
    if np.allclose(np.sort(one.expected.ravel()), np.sort(one.found.ravel()), rtol=0, atol=1e-9 * largest):
        return "the baseline's elements in another order"
    return ""


def _alike(values: Array) -> bool:
    return bool(np.ptp(values) <= ALIKE * np.abs(values).max())


def _number(value: float) -> str:
    near = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return str(near) if abs(float(near) - value) <= ALIKE * abs(value) else f"{value:.6g}"
