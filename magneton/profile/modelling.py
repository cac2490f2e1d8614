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


def modelled_j(profile: Profile, device: DeviceModel) -> NDArray[np.float64]:
    """[DRAWS, N] energy of one execution of every operator on ``device``; 0 for what launches nothing."""
    operators = profile.operators
    flops = np.array([operator.flops for operator in operators], dtype=np.float64)
    moved = np.array([operator.bytes_moved for operator in operators], dtype=np.float64)
    unit = np.array([unit_of(each, profile, device.units) for each in operators], dtype=np.intp)
    launched = np.array([_launches(operator) for operator in operators], dtype=np.bool_)
    kernel = np.array([crc32(operator.name.encode()) % _KERNELS for operator in operators], dtype=np.intp)
    drawn = {name: _drawn(name, coefficient) for name, coefficient in device.coefficients()}
    misses = _likelihood(_scores(_CACHE_MISSES))
    rates, prices = (
        np.array([drawn[f"{unit.name()} {figure}"] for unit in device.units])
        for figure in ("flop_per_s", "j_per_flop")
    )
    factors = _kernel_factors(np.unique(kernel))
    energy_j = np.empty((DRAWS, len(operators)))
    for d in range(DRAWS):
        one = {name: figures[d] for name, figures in drawn.items()}
        time_s = np.maximum(flops / rates[unit, d], moved / one["memory_bytes_per_s"])
        time_s = np.maximum(time_s, one["shortest_kernel_s"])
        near, far = one["cache_j_per_byte"], one["memory_j_per_byte"]
        per_byte = np.where(moved <= one["cache_bytes"], near + misses[d] * (far - near), far)
        spent_j = one["constant_power_w"] * time_s + prices[unit, d] * flops + per_byte * moved
        spent_j *= factors[kernel, d]
        energy_j[d] = np.where(launched, np.minimum(spent_j, one["tdp_w"] * time_s), 0.0)
    return energy_j


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


def _launches(operator: Operator) -> bool:
    """Views and allocations, and operators on nothing, start no kernel."""
    works = operator.flops > 0 or operator.bytes_moved > 0
    return works and operator.effect not in ("view", "alloc")


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


def _kernel_factors(used: NDArray[np.intp]) -> NDArray[np.float64]:
    """[kinds, DRAWS] by how much the model misses operators of a kind; 1 on average."""
    factors = np.ones((_KERNELS, DRAWS))
    for kind in used.tolist():
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
