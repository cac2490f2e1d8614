"""A figure that knows how far to trust it."""

from dataclasses import dataclass
from enum import StrEnum


class Provenance(StrEnum):
    """Where a figure comes from. The three are never mixed in one comparison."""

    MEASURED = "measured"
    MODELLED = "modelled"
    COUNTED = "counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A value with its interval, the number of readings behind it, and their provenance.

    The unit is in the name of the field that holds it (``energy_j: Quantity``). ``low`` and ``high``
    bound the value at 95 %; with one noise-free reading (a count) they equal it, with one noisy
    reading they are unbounded (``-inf``, ``inf``): a single sample has no spread.
    """

    value: float
    low: float
    high: float
    n: int
    provenance: Provenance

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} lies outside its interval [{self.low}, {self.high}]")
        if self.n < 1:
            raise ValueError("a quantity needs at least one reading; not measured is None")

    def scaled(self, factor: float) -> "Quantity":
        """The same readings, each times a known non-negative ``factor``."""
        if factor < 0:
            raise ValueError("a negative factor would turn the interval around")
        return Quantity(
            value=self.value * factor,
            low=self.low * factor,
            high=self.high * factor,
            n=self.n,
            provenance=self.provenance,
        )
