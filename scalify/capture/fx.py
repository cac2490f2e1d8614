"""A live FX graph as plain records: the same that an export archive's JSON becomes.

Positional arguments get the names of the operator's schema. A ``getitem`` of a call with several results
is that result. Symbolic sizes are refused where they are not plain numbers.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from torch._C import FunctionSchema
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from scalify.errors import CaptureFailed
from scalify.ir.graph import DType, Site, TensorType
from scalify.load.torch_export.program import Argument, Body, Call, DTypeName, Foreign, Ref, Value, ValueName
from scalify.load.torch_export.sites import frames

DTYPES: Mapping[torch.dtype, DType] = MappingProxyType({
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2", torch.int64: "i64", torch.int32: "i32",
    torch.int16: "i16", torch.int8: "i8", torch.uint64: "u64", torch.uint32: "u32", torch.uint16: "u16",
    torch.uint8: "u8", torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
})  # fmt: skip


def tensor_type(tensor: torch.Tensor, what: str) -> TensorType:
    """Type of a tensor with fixed sizes."""
    if tensor.dtype not in DTYPES:
        raise CaptureFailed(f"{what} is of type {tensor.dtype}, which is not read", hint="use another type")
    if any(type(size) is not int for size in tensor.shape):
        raise CaptureFailed(
            f"{what} is of a size that depends on values",
            hint="use operators of fixed shapes: torch.where for a mask, a capacity for what is chosen",
        )
    return TensorType(DTYPES[tensor.dtype], tuple(int(size) for size in tensor.shape))


def value_of(tensor: torch.Tensor, name: str) -> Value:
    """A tensor as a result."""
    return Value(
        name=ValueName(name), type=tensor_type(tensor, name), contiguous=bool(tensor.is_contiguous())
    )


@dataclass(slots=True)
class FxReader:
    """Reads the calls of one graph. ``scopes`` and ``stacks`` say where nodes stand, if these do not."""

    module: GraphModule
    scopes: Mapping[str, str] = field(default_factory=dict[str, str])
    stacks: Mapping[str, tuple[Site, ...]] = field(default_factory=dict[str, tuple[Site, ...]])
    _renamed: dict[Node, ValueName] = field(default_factory=dict[Node, ValueName])
    _bodies: dict[Node, Body] = field(default_factory=dict[Node, Body])

    def calls(self) -> tuple[Call, ...]:
        """Every call, in order."""
        calls: list[Call] = []
        for node in self.module.graph.nodes:
            if node.op == "get_attr" and isinstance(inner := self._attribute(node), GraphModule):
                self._bodies[node] = FxReader(inner).body()
            if node.op == "call_function":
                self._add(node, calls)
        return tuple(calls)

    def body(self) -> Body:
        """The whole graph as the inside of a call."""
        inputs = tuple(ValueName(node.name) for node in self.module.graph.nodes if node.op == "placeholder")
        calls = self.calls()
        outputs = self.outputs()
        return Body(
            inputs=inputs,
            calls=calls,
            outputs=tuple(out if isinstance(out, Ref) else None for out in outputs),
        )

    def outputs(self) -> tuple[Argument, ...]:
        """What the graph returns, flat."""
        node = next(node for node in self.module.graph.nodes if node.op == "output")
        given = self.argument(node.args[0])
        return given if isinstance(given, tuple) else (given,)

    def _attribute(self, node: Node) -> object:
        value: object = self.module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return value

    def _add(self, node: Node, calls: list[Call]) -> None:
        if getattr(node.target, "__name__", "") == "getitem" and isinstance(node.args[0], Node):
            self._renamed[node] = self._item(node)
            return
        if not isinstance(node.target, OpOverload) and not hasattr(node.target, "namespace"):
            if all(isinstance(out, int | float | bool) for out in (node.meta.get("val"),)):
                return
            raise CaptureFailed(
                f"the graph calls {node.target}, no operator of PyTorch", hint="use tensor operators"
            )
        try:
            calls.append(self._call(node))
        except CaptureFailed as error:
            raise CaptureFailed(f"{error}{self._at(node)}", hint=error.hint) from error

    def _at(self, node: Node) -> str:
        stack = self._stack(node)
        return f" (at {stack[-1].file}:{stack[-1].line})" if stack else ""

    def _stack(self, node: Node) -> tuple[Site, ...]:
        return self.stacks.get(node.name) or frames(node.meta.get("stack_trace") or "")

    def _item(self, node: Node) -> ValueName:
        source, place = node.args[0], node.args[1]
        assert isinstance(source, Node)
        return ValueName(f"{source.name}#{place}")

    def _call(self, node: Node) -> Call:
        target = node.target
        arguments: dict[str, Argument] = {}
        names = _argument_names(target) if isinstance(target, OpOverload) else ()
        for place, given in enumerate(node.args):
            arguments[names[place] if place < len(names) else f"#{place}"] = self.argument(given)
        for name, given in node.kwargs.items():
            arguments[name] = self.argument(given)
        return Call(
            name=node.name,
            target=str(target) if isinstance(target, OpOverload) else f"higher_order.{target}",
            arguments=MappingProxyType(arguments),
            results=self._results(node),
            stack=self._stack(node),
            scope=self._scope(node),
        )

    def _results(self, node: Node) -> tuple[Value | None, ...]:
        produced = node.meta.get("val")
        if isinstance(produced, torch.Tensor):
            return (value_of(produced, node.name),)
        if not isinstance(produced, tuple | list):
            return ()
        return tuple(
            value_of(part, f"{node.name}#{place}") if isinstance(part, torch.Tensor) else None
            for place, part in enumerate(produced)
        )

    def _scope(self, node: Node) -> str:
        stack = node.meta.get("nn_module_stack")
        if not stack:
            return self.scopes.get(node.name, "")
        path = list(stack.values())[-1][0]
        return str(path).removeprefix("L['self'].").removeprefix("L['self']")

    def argument(self, given: object) -> Argument:
        """Any argument of a node."""
        if isinstance(given, Node):
            return self._bodies.get(given) or self._node(given)
        if isinstance(given, tuple | list):
            return tuple(self.argument(entry) for entry in given)
        if given is None or isinstance(given, bool | int | float | complex | str):
            return given
        if isinstance(given, torch.dtype):
            return DTypeName(DTYPES[given]) if given in DTYPES else Foreign(str(given), matters=True)
        if isinstance(given, torch.device | torch.layout | torch.memory_format):
            return Foreign(str(given))
        raise CaptureFailed(
            f"an operator is given {given!r}, which a graph cannot hold", hint="use fixed shapes"
        )

    def _node(self, node: Node) -> Argument:
        if node in self._renamed:
            return Ref(self._renamed[node])
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            raise CaptureFailed(
                f"a number, {node.name}, is read out of a tensor: what is done with it depends on values",
                hint="keep it a tensor: multiply by it, or look up with torch.index_select or torch.gather",
            )
        return value if isinstance(value, bool | int | float) else Ref(ValueName(node.name))


def origin(module: GraphModule) -> str:
    """What tells this graph from others: a digest of its code."""
    return hashlib.sha256(module.code.encode()).hexdigest()[:16]


def pure_operators(module: GraphModule) -> frozenset[str]:
    """Operators whose schema says that they write to nothing they are given."""
    targets = (node.target for node in module.graph.nodes if node.op == "call_function")
    return frozenset(
        str(target) for target in targets if isinstance(target, OpOverload) and not _schema(target).is_mutable
    )


def _argument_names(operator: OpOverload) -> tuple[str, ...]:
    return tuple(argument.name for argument in _schema(operator).arguments)


def _schema(operator: OpOverload) -> FunctionSchema:
    # There is no public way to an operator's schema.
    return operator._schema  # pyright: ignore[reportPrivateUsage]
