"""A module of StableHLO as a listing of instructions: calls and branches inlined, loops unrolled.

``sdy.manual_computation``, which ``shard_map`` is lowered to, is opened as in ``capture.jax``: outside of it
a value is the whole array, at its border each rank takes its block, and blocks are put together again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.load.hlo.program import Alias, Metadata, Module
from scalify.load.stablehlo.attributes import shape_of
from scalify.load.stablehlo.graph import distinct, dotted
from scalify.load.stablehlo.listing import Listed, Listing
from scalify.load.stablehlo.locations import Places, name_in
from scalify.load.stablehlo.manual import axes_of

MAX_CALL_DEPTH = 100
MAX_OPERATIONS = 400_000

# Operations, values and attributes are classes of MLIR's bindings, whose stubs do not tell what is in them.
Values = dict[Any, int]
Handler = Callable[["Step"], Sequence[int]]
TERMINATORS = frozenset({"func.return", "stablehlo.return", "sdy.return"})


@dataclass(slots=True, kw_only=True)
class Step(Listed):
    """One operation being listed. ``around`` are the values that its regions can refer to."""

    reader: "Reader"
    operation: Any
    around: Values

    @property
    def name(self) -> str:
        """The operation's name with its dialect."""
        return str(self.operation.name)

    def attribute(self, name: str) -> Any:
        """One attribute; None where it has none of this name."""
        return self.operation.attributes.get(name, None)

    def integer(self, name: str) -> int:
        """An integer attribute that the operation must have."""
        attribute = self.attribute(name)
        if attribute is None:
            raise self.refused(f"has no {name}")
        return int(attribute.value)

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An array of integers that the operation must have, if there is no default."""
        attribute = self.attribute(name)
        if attribute is None:
            if default is None:
                raise self.refused(f"has no {name}")
            return default
        return tuple(int(number) for number in attribute)

    def block(self, region: int = 0) -> Any:
        """The block of a region that has one."""
        return self.operation.regions[region].blocks[0]

    def run(self, block: Any, arguments: Sequence[int]) -> list[int]:
        """List what a block within this operation computes."""
        return self.reader.run(block, arguments, self.around, self.metadata)

    def refused(self, why: str) -> UnsupportedFormat:
        """The operation cannot be read."""
        return UnsupportedFormat(
            f"{self.name} {why}", hint="capture the function itself: scalify capture module.py:build"
        )


class Reader:
    """Lists a module. ``handlers`` say what an operation becomes; ``other`` what one without does."""

    def __init__(self, module: Any, file: str, handlers: Mapping[str, Handler], other: Handler) -> None:
        self._handlers = handlers
        self._other = other
        self._depth = 0
        self._count = 0
        self.functions = _functions(module)
        self.listing = Listing(_name(module), axes_of(module))
        self._places = Places(self.listing, file)

    def program(self) -> tuple[Module, tuple[str, ...]]:
        """The module of the public function ``main``, and the names of its results."""
        main = self.functions.get("main")
        if main is None:
            raise InvalidGraph("the module has no function main", hint="lower a function with jax.jit")
        block = main.regions[0].blocks[0]
        names = distinct([dotted(name_in(str(argument.location))) for argument in block.arguments])
        inputs = [
            self.listing.add(
                "parameter", (), shape_of(argument.type), name=names[place], parameter_number=place
            )
            for place, argument in enumerate(block.arguments)
        ]
        results = self.run(block, inputs, {}, None)
        if not results:
            raise InvalidGraph("the function main has no result", hint="return what is to be compared")
        return self.listing.module(results, _aliases(main, len(results))), _output_names(main, len(results))

    def run(self, block: Any, arguments: Sequence[int], around: Values, caller: Metadata | None) -> list[int]:
        """List a block with its arguments bound; the ids of what it returns."""
        self._depth += 1
        if self._depth > MAX_CALL_DEPTH:
            raise InvalidGraph(f"calls are nested {MAX_CALL_DEPTH} deep", hint="inline some of them")
        values: Values = {**around, **dict(zip(block.arguments, arguments, strict=True))}
        for view in block.operations:
            operation = view.operation
            if operation.name in TERMINATORS:
                self._depth -= 1
                return [values[operand] for operand in operation.operands]
            self._list(operation, values, caller)
        raise InvalidGraph("a block does not return", hint="write the file again")

    def _list(self, operation: Any, values: Values, caller: Metadata | None) -> None:
        self._count += 1
        if self._count > MAX_OPERATIONS:
            raise InvalidGraph(
                f"the module has more than {MAX_OPERATIONS} operations once its calls are inlined",
                hint="verify a part of the model, or fewer layers",
            )
        name = str(operation.name)
        handler = self._handlers.get(name, self._other)
        step = Step(
            listing=self.listing,
            operands=tuple(values[operand] for operand in operation.operands),
            shapes=tuple(shape_of(result.type) for result in operation.results),
            metadata=self._places.of(str(_told(operation).location), caller),
            reader=self,
            operation=operation,
            around=values,
        )
        try:
            results = handler(step)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise UnsupportedFormat(
                f"{name} has attributes that are not read: {error}",
                hint="write it by the pinned release of JAX",
            ) from error
        values.update(zip(operation.results, results, strict=True))


def _told(operation: Any) -> Any:
    """Whose line an operation has: JAX places a number at the call around it, not at what reads it."""
    if operation.name != "stablehlo.constant":
        return operation
    readers = [use.owner for use in operation.results[0].uses]
    return readers[-1].operation if readers else operation


def _name(module: Any) -> str:
    attributes = module.operation.attributes
    return str(attributes["sym_name"].value) if "sym_name" in attributes else "module"


def _functions(module: Any) -> dict[str, Any]:
    return {
        str(view.operation.attributes["sym_name"].value): view.operation
        for view in module.body.operations
        if view.operation.name == "func.func"
    }


def _texts(function: Any, kind: str, key: str, count: int) -> list[Any]:
    """An attribute of every argument or result; None where one has it not."""
    if kind not in function.attributes:
        return [None] * count
    tables = list(function.attributes[kind])
    return [table[key] if key in table else None for table in tables]  # noqa: SIM401 - it has no get


def _output_names(function: Any, count: int) -> tuple[str, ...]:
    told = _texts(function, "res_attrs", "jax.result_info", count)
    paths = [f"[{place}]" if one is None else str(one.value) for place, one in enumerate(told)]
    return distinct([dotted("output" + path.removeprefix("result")) for path in paths])


def _aliases(function: Any, count: int) -> tuple[Alias, ...]:
    """Inputs whose buffers results take over."""
    arguments = len(function.regions[0].blocks[0].arguments)
    told = _texts(function, "arg_attrs", "tf.aliasing_output", arguments)
    return tuple(
        Alias(output=(int(one.value),), parameter=place)
        for place, one in enumerate(told)
        if one is not None and 0 <= int(one.value) < count
    )
