"""Joules of a device that was never there: from what operators do, and what doing it costs the device.

In: the operators of a profile, with their counts, and a ``DeviceModel``. Out: joules of each operator, once
for each of ``DRAWS`` sets of coefficients, all of them possible:

    time    max(FLOP / peak, bytes / bandwidth, shortest kernel)
    energy  constant power x time + J per FLOP x FLOP + J per byte x bytes, at most TDP x time

(Antepara et al., SC'25, DOI 10.1145/3712285.3759815, with the roofline's time in place of a measured one.)

**Ranges.** Draw ``d`` is one set of coefficients, the same for all operators and for every profile of the
device, so an error that both sides of a ratio share cancels in it. Within its range a coefficient is as
likely below its value as above, and the less likely the further away, on a logarithmic scale. Half of what
moves rates, energies of arithmetic and energies of moving data is common to the coefficients of that kind
(clock, voltage, the sensor behind the figures).

The form itself is off too: models fitted to one board miss single kernels by 7 to 14 % on average (Wattchmen,
ICS'26; EnergAIzer, arXiv 2604.20105). Each operator's name therefore has a factor of its own in every draw,
of ``KERNEL_ERROR``. It cancels where both sides call the same operator, and not where one calls another.

**What it does not know.** Nothing lies between operators: launches, Python and waiting cost nothing. A kernel
reaches the roofline; a contraction too small to fill the device does not, and costs more than it says here.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from magneton.profile.device import Arithmetic, ArithmeticUnit, Coefficient, DeviceModel
from magneton.profile.model import Operator, Profile, Value

DRAWS = 200
KERNEL_ERROR = 0.15  # one standard deviation, logarithmic: 12 % on average

_CAUSES = {
    "flop_per_s": "clock",
    "j_per_flop": "energy of arithmetic",
    "memory_j_per_byte": "energy of moving data",
    "cache_j_per_byte": "energy of moving data",
}
_CACHE_MISSES = "how much of what would fit comes from memory all the same"
_KERNELS = 1024  # kinds that are told apart; a file may have any number of names
_MATRIX: Mapping[str, tuple[Arithmetic, ...]] = {  # by dtype of a contraction, the first that a device has
    "float64": ("float64",),
    "float32": ("float32",),
    "bfloat16": ("bfloat16",),
    "float16": ("float16",),
    "float8": ("float8", "float16"),
    "int8": ("int8",),
    "uint8": ("int8",),
}
_DOUBLE = ("float64", "complex128")
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What the energy of an operator depends on; operators of a model are few kinds of it, many times."""

    flops: int
    bytes_moved: int
    unit: int
    kernel: int


def modelled_j(profile: Profile, device: DeviceModel) -> NDArray[np.float64]:
    """[DRAWS, N] energy of one execution of every operator on ``device``; 0 for what launches nothing."""
    work = [_work_of(operator, profile, device) for operator in profile.operators]
    distinct = tuple(dict.fromkeys(work))
    place = {one: index for index, one in enumerate(distinct)}
    return _energies_j(distinct, device)[:, [place[one] for one in work]]


def _work_of(operator: Operator, profile: Profile, device: DeviceModel) -> _Work:
    """Views and allocations start no kernel, like operators on nothing."""
    launches = operator.effect not in ("view", "alloc")
    return _Work(
        flops=operator.flops if launches else 0,
        bytes_moved=operator.bytes_moved if launches else 0,
        unit=unit_of(operator, profile, device.units) if launches else 0,
        kernel=crc32(operator.name.encode()) % _KERNELS if launches else 0,
    )


def _energies_j(work: Sequence[_Work], device: DeviceModel) -> NDArray[np.float64]:
    """[DRAWS, len(work)]"""
    flops = np.array([one.flops for one in work], dtype=np.float64)
    moved = np.array([one.bytes_moved for one in work], dtype=np.float64)
    unit, kernel = (np.array([getattr(one, n) for one in work], dtype=np.intp) for n in ("unit", "kernel"))
    drawn = {name: _drawn(name, coefficient) for name, coefficient in device.coefficients()}
    misses, factors = _likelihood(_scores(_CACHE_MISSES)), _kernel_factors(kernel)
    rates, prices = (
        np.array([drawn[f"{unit.name()} {figure}"] for unit in device.units])
        for figure in ("flop_per_s", "j_per_flop")
    )
    energy_j = np.empty((DRAWS, len(work)))
    for d in range(DRAWS):
        one = {name: figures[d] for name, figures in drawn.items()}
        time_s = np.maximum(flops / rates[unit, d], moved / one["memory_bytes_per_s"])
        time_s = np.maximum(time_s, one["shortest_kernel_s"])
        near = one["cache_j_per_byte"]
        far = max(near, one["memory_j_per_byte"])  # whose path is the longer one, where ranges overlap too
        per_byte = np.where(moved <= one["cache_bytes"], near + misses[d] * (far - near), far)
        spent_j = one["constant_power_w"] * time_s + prices[unit, d] * flops + per_byte * moved
        energy_j[d] = np.minimum(factors[kernel, d] * spent_j, one["tdp_w"] * time_s)
    return np.where(flops + moved > 0, energy_j, 0.0)


def unit_of(operator: Operator, profile: Profile, units: Sequence[ArithmeticUnit]) -> int:
    """Which of ``units`` computes it: the matrix unit of a contraction's format, else a vector unit."""
    place = {(unit.kind, unit.arithmetic): index for index, unit in enumerate(units)}
    dtype = _dtype_of([profile.values[value] for value in operator.inputs or operator.outputs])
    if _contracts(operator, profile.values):
        known = _MATRIX.get(dtype.partition("_")[0], ())
        wanted = ("tf32", *known) if dtype == "float32" and _allows_tf32(operator, profile) else known
        for arithmetic in wanted:
            if ("matrix", arithmetic) in place:
                return place["matrix", arithmetic]
    fallback = place["vector", "float32"]
    return place.get(("vector", "float64"), fallback) if dtype in _DOUBLE else fallback


def _contracts(operator: Operator, values: Sequence[Value]) -> bool:
    """No other operator is counted more than one FLOP per element of its largest operand or its results."""
    read = max((math.prod(values[value].shape) for value in operator.inputs), default=0)
    made = sum(math.prod(values[value].shape) for value in operator.outputs)
    return operator.flops > max(read, made)


def _dtype_of(operands: Sequence[Value]) -> str:
    """Of the largest operand that is a floating-point number, else of the largest; "" where there is none."""
    if not operands:
        return ""
    floating = [value for value in operands if "float" in value.dtype or "complex" in value.dtype]
    return max(floating or operands, key=lambda value: math.prod(value.shape)).dtype


def _allows_tf32(operator: Operator, profile: Profile) -> bool:
    """As the flags were found: contractions of float32 may be rounded to TF32 first."""
    flags = profile.origin.flags
    override = flags.get("env.NVIDIA_TF32_OVERRIDE")
    if override in ("0", "1"):
        return override == "1"
    kind = "cudnn" if "conv" in operator.name else "cuda.matmul"
    return flags.get(f"torch.backends.{kind}.allow_tf32") in ("True", "fp32_precision=tf32")


def _drawn(name: str, coefficient: Coefficient) -> NDArray[np.float64]:
    """[DRAWS] possible values of a coefficient."""
    scores = _scores(name)
    cause = _CAUSES.get(name.rpartition(" ")[2])
    if cause is not None:
        scores = (scores + _scores(cause)) / math.sqrt(2)
    likelihood = _likelihood(scores)
    place = np.where(
        likelihood < 0.5, np.sqrt(2 * likelihood) - 1, 1 - np.sqrt(np.maximum(2 - 2 * likelihood, 0))
    )
    reach = np.where(
        place < 0,
        math.log(coefficient.value / coefficient.low),
        math.log(coefficient.high / coefficient.value),
    )
    return coefficient.value * np.exp(place * reach)


def _kernel_factors(kinds: NDArray[np.intp]) -> NDArray[np.float64]:
    """[kinds, DRAWS] by how much the model misses operators of a kind; 1 on average."""
    factors = np.ones((_KERNELS, DRAWS))
    for kind in np.unique(kinds).tolist():
        missed = np.exp(KERNEL_ERROR * _scores(f"kernels of kind {kind}"))
        factors[kind] = missed / missed.mean()
    return factors


def _likelihood(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a score or less."""
    return np.array([_NORMAL.cdf(score) for score in scores])


@cache
def _scores(name: str) -> NDArray[np.float64]:
    """[DRAWS] standard normal scores, evenly spread, in an order that ``name`` alone decides.

    ``random.random`` gives the same numbers in every version of Python, as no other generator promises.
    """
    shuffled = random.Random(name)
    keys = np.array([shuffled.random() for _ in range(DRAWS)])
    spread = np.array([_NORMAL.inv_cdf((k + 0.5) / DRAWS) for k in range(DRAWS)])
    scores = spread[np.argsort(keys)]
    scores.flags.writeable = False
    return scores
