"""A jaxpr as a listing of instructions: calls and branches inlined, loops unrolled, ``shard_map`` opened.

Outside of ``shard_map`` a value is the whole array, which every rank holds. At its border each rank takes its
block, as ``in_specs`` say, and the blocks are put together again, as ``out_specs`` say: so the program on all
ranks takes and gives whole arrays, and nothing about layouts is left to be assumed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalify.capture.jax.frames import user_frames
from scalify.capture.jax.values import bytes_of, shape_of
from scalify.errors import CaptureFailed
from scalify.load.hlo.program import Metadata
from scalify.load.stablehlo.listing import Listed, Listing

# Equations, variables and parameters of jaxprs are JAX's own, untyped classes.
Jaxpr = Any
Equation = Any
Handler = Callable[["Call"], Sequence[int]]


@dataclass(slots=True, kw_only=True)
class Call(Listed):
    """One equation being listed."""

    reader: "Reader"
    equation: Equation

    @property
    def params(self) -> Mapping[str, Any]:
        """The equation's parameters."""
        return self.equation.params

    def integers(self, name: str) -> tuple[int, ...]:
        """A parameter that is a row of integers."""
        return whole(self.params[name])

    @property
    def primitive(self) -> str:
        """The name of what is called."""
        return str(self.equation.primitive.name)

    def run(self, jaxpr: Jaxpr, arguments: Sequence[int]) -> list[int]:
        """List what a jaxpr within this equation computes."""
        return self.reader.run(jaxpr, arguments, self.metadata.op_name)

    def refused(self, why: str, hint: str) -> CaptureFailed:
        """The equation cannot be captured."""
        site = next(reversed(user_frames(self.equation)), None)
        where = f" (at {site[0]}:{site[1]})" if site else ""
        return CaptureFailed(f"{self.primitive}{where}: {why}", hint=hint)


class Reader:
    """Lists jaxprs. ``handlers`` say what a primitive becomes; ``other`` what one without a handler does."""

    def __init__(self, listing: Listing, handlers: Mapping[str, Handler], other: Handler) -> None:
        self.listing = listing
        self._handlers = handlers
        self._other = other

    def run(self, jaxpr: Jaxpr, arguments: Sequence[int], scope: str = "") -> list[int]:
        """List a jaxpr's equations with its inputs bound; the ids of its results."""
        consts: Sequence[Any] = ()
        if hasattr(jaxpr, "consts"):
            consts, jaxpr = jaxpr.consts, jaxpr.jaxpr
        values: dict[Any, int] = {}
        for variable, const in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = self._constant(variable.aval, const)
        values.update(zip(jaxpr.invars, arguments, strict=True))
        for equation in jaxpr.eqns:
            self._list(equation, values, scope)
        return [self._value(variable, values) for variable in jaxpr.outvars]

    def _list(self, equation: Equation, values: dict[Any, int], scope: str) -> None:
        own = str(equation.source_info.name_stack)
        place = user_frames(equation)
        metadata = self.listing.placed(place, "/".join(part for part in (scope, own) if part))
        operands = tuple(self._value(variable, values, metadata) for variable in equation.invars)
        call = Call(
            listing=self.listing,
            operands=operands,
            shapes=tuple(shape_of(variable.aval) for variable in equation.outvars),
            metadata=metadata,
            reader=self,
            equation=equation,
        )
        results = self._handlers.get(call.primitive, self._other)(call)
        values.update(zip(equation.outvars, results, strict=True))

    def _value(self, variable: Any, values: Mapping[Any, int], metadata: Metadata | None = None) -> int:
        if hasattr(variable, "val"):
            return self._constant(variable.aval, variable.val, metadata)
        return values[variable]

    def _constant(self, aval: Any, value: Any, metadata: Metadata | None = None) -> int:
        return self.listing.literal(bytes_of(value, aval), shape_of(aval), metadata)


def whole(numbers: Iterable[Any]) -> tuple[int, ...]:
    """Integers as Python's own: JAX has NumPy's among them."""
    return tuple(int(number) for number in numbers)


def jaxprs_in(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                yield part.jaxpr if hasattr(part, "jaxpr") else part
