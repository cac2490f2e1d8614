"""What is run to calibrate a device, and who runs it.

A ``Benchmark`` does one thing only, of which is known beforehand how many operations and bytes it takes. A
``Workbench`` is a device that can do it: PyTorch's, or in tests one whose coefficients are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from magneton.profile.device import Arithmetic
from magneton.system import Kind

Work = Literal["rest", "launch", "sum", "copy", "matmul", "chain"]
Data = Literal["random", "zeros"]

CONSTANT, MEMORY, CACHE = "constant_power_w", "memory_j_per_byte", "cache_j_per_byte"
LAUNCH = "j_per_launch"  # in no device file: it keeps what launching costs out of the other terms
ZEROS = " on zeros"  # after a term's name: the same with operands that are all zero

REST_S = 0.1  # of one repetition of "rest"
FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Work to be repeated. ``amounts`` says how much of what one repetition does, by the term it is paid in.

    ``size`` is the elements of one operand, or the edge of square matrices; ``depth`` the multiplications
    and additions of a chain for each element.
    """

    name: str
    work: Work
    amounts: Mapping[str, float]
    arithmetic: Arithmetic = "float32"
    size: int = 0
    depth: int = 0
    data: Data = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What the framework and the driver say of a device."""

    name: str
    kind: Kind
    driver: str  # "" where there is none
    software: str  # "torch 2.13.0"
    cache_bytes: float | None  # of the last level; None: not told
    free_bytes: int
    matrix: tuple[Arithmetic, ...]  # the formats of its matrix units
    chains: bool  # whether chains of arithmetic that leave memory alone can be run


class Workbench(Protocol):
    """A device that runs benchmarks, one repetition right after the other."""

    def facts(self) -> DeviceFacts: ...

    def run(self, benchmark: Benchmark, repetitions: int) -> None:
        """Start them; the first call for a benchmark also makes its operands, in place of earlier ones."""
        ...

    def synchronise(self) -> None:
        """Wait until all that was started is over."""
        ...


def energy_term(kind: str, arithmetic: Arithmetic) -> str:
    """The name of a unit's energy per FLOP, as in ``DeviceModel.coefficients``."""
    return f"{kind} {arithmetic} j_per_flop"


def rate_term(kind: str, arithmetic: Arithmetic) -> str:
    """The name of a unit's peak."""
    return f"{kind} {arithmetic} flop_per_s"
