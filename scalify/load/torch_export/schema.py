"""The JSON of a torch.export archive as a ``Program``.

Every argument and result of PyTorch's schema is a tagged union (``{"as_tensor": {"name": "x"}}``). Names
are kept; types come from the table of tensor values. Symbolic sizes are refused: a proof here is about
one shape.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.load.torch_export.archive import Json
from scalify.load.torch_export.fields import array, damaged, integer, mapping, only, text
from scalify.load.torch_export.program import (
    Argument,
    Body,
    Call,
    DTypeName,
    Foreign,
    Ref,
    Value,
    ValueName,
)
from scalify.load.torch_export.scalars import SCALAR_TYPES
from scalify.load.torch_export.sites import frames, scope
from scalify.load.torch_export.tensors import TensorMeta, tensor_meta

CALLS_LIMIT = 250_000
_DEEPEST_BODY = 8


class Reader:
    """Reads the graph of one archive. Bodies of ``no_grad`` blocks see their own table of values."""

    def __init__(self, graph: Json, depth: int = 0) -> None:
        if depth > _DEEPEST_BODY:
            raise damaged("graphs inside graphs beyond measure")
        self._depth = depth
        self._types = mapping(graph.get("tensor_values"), "tensor_values")
        self._sym_ints = mapping(graph.get("sym_int_values") or {}, "sym_int_values")
        self._nodes = array(graph.get("nodes"), "nodes")
        self._graph = graph
        if len(self._nodes) > CALLS_LIMIT:
            raise InvalidGraph(
                f"the graph has {len(self._nodes)} nodes; at most {CALLS_LIMIT} are read",
                hint="export a smaller part of the model",
            )

    def meta(self, name: str) -> TensorMeta:
        """Type and layout of a value."""
        if name not in self._types:
            raise damaged(f"value {name} has no type")
        return tensor_meta(self._types[name], f"value {name}")

    def calls(self) -> tuple[Call, ...]:
        """The calls, in the file's order."""
        return tuple(self._call(mapping(node, "a node")) for node in self._nodes)

    def body(self) -> Body:
        """The whole graph as the inside of a call."""
        inputs = [self.argument(entry) for entry in array(self._graph.get("inputs"), "inputs")]
        outputs = [self.argument(entry) for entry in array(self._graph.get("outputs"), "outputs")]
        if not all(isinstance(entry, Ref) for entry in inputs):
            raise UnsupportedFormat(
                "a graph inside a call takes something else than tensors", hint="inline it"
            )
        return Body(
            inputs=tuple(entry.name for entry in inputs if isinstance(entry, Ref)),
            calls=self.calls(),
            outputs=tuple(entry if isinstance(entry, Ref) else None for entry in outputs),
        )

    def _call(self, node: Json) -> Call:
        target = text(node.get("target"), "a node's target").removeprefix("torch.ops.")
        arguments: dict[str, Argument] = {}
        for position, entry in enumerate(array(node.get("inputs"), f"{target}'s inputs")):
            fields = mapping(entry, f"an input of {target}")
            name = text(fields.get("name"), f"an input of {target}") or f"#{position}"
            if name in arguments:
                raise damaged(f"{target} has two arguments {name}")
            arguments[name] = self.argument(fields.get("arg"))
        metadata = mapping(node.get("metadata") or {}, f"{target}'s metadata")
        results = self._results(node)
        named = node.get("name") or next((value.name for value in results if value), target)
        return Call(
            name=text(named, f"{target}'s name"),
            target=target,
            arguments=MappingProxyType(arguments),
            results=results,
            stack=frames(text(metadata.get("stack_trace", ""), "a stack trace")),
            scope=scope(text(metadata.get("nn_module_stack", ""), "a module stack")),
        )

    def _results(self, node: Json) -> tuple[Value | None, ...]:
        results: list[Value | None] = []
        for entry in array(node.get("outputs"), "a node's outputs"):
            value = self.argument(entry)
            results.extend(self._result(part) for part in (value if isinstance(value, tuple) else (value,)))
        return tuple(results)

    def _result(self, value: Argument) -> Value | None:
        if not isinstance(value, Ref) or value.name not in self._types:
            return None
        meta = self.meta(value.name)
        return Value(name=value.name, type=meta.type, contiguous=meta.contiguous)

    def argument(self, entry: object) -> Argument:
        """Any argument or result."""
        tag, value = only(entry, "an argument")
        if tag == "as_graph":
            inner = mapping(mapping(value, "a graph").get("graph"), "a graph")
            return Reader(inner, self._depth + 1).body()
        if tag in ("as_sym_int", "as_sym_ints"):
            return self._symbolic(tag, value)
        if tag not in _READERS:
            return Foreign(f"{tag}", matters=True)
        return _READERS[tag](value)

    def _symbolic(self, tag: str, value: object) -> Argument:
        if tag == "as_sym_ints":
            return tuple(self._symbolic("as_sym_int", entry) for entry in array(value, tag))
        kind, number = only(value, tag)
        if kind == "as_name":
            name = text(number, tag)
            kind, number = only(self._sym_ints.get(name), f"symbolic integer {name}")
        if kind != "as_int":
            raise UnsupportedFormat("the graph has symbolic sizes", hint="export with fixed shapes")
        return integer(number, tag)


def _ref(value: object) -> Ref:
    return Ref(ValueName(text(mapping(value, "a tensor").get("name"), "a tensor's name")))


def _optional(value: object) -> Argument:
    tag, tensor = only(value, "an optional tensor")
    return _ref(tensor) if tag == "as_tensor" else None


def _dtype(value: object) -> Argument:
    code = integer(value, "a data type")
    return DTypeName(SCALAR_TYPES[code]) if code in SCALAR_TYPES else Foreign(f"dtype {code}", matters=True)


def _float(value: object) -> float:
    """Infinities and NaN come as strings or as JSON's extensions."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise damaged("a float is no number")
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise damaged(f"a float is no number: {error}") from error


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise damaged("a boolean is none")
    return value


def _complex(value: object) -> complex:
    fields = mapping(value, "a complex number")
    return complex(_float(fields.get("real")), _float(fields.get("imag")))


def _device(value: object) -> Foreign:
    return Foreign(text(mapping(value, "a device").get("type"), "a device"))


def _listed(read: Callable[[object], Argument]) -> Callable[[object], Argument]:
    return lambda value: tuple(read(entry) for entry in array(value, "a list argument"))


def _int(value: object) -> Argument:
    return integer(value, "an integer argument")


def _text(value: object) -> Argument:
    return text(value, "a text argument")


_READERS: Mapping[str, Callable[[object], Argument]] = MappingProxyType({
    "as_none": lambda _: None,
    "as_tensor": _ref,
    "as_tensors": _listed(_ref),
    "as_optional_tensor": _optional,
    "as_optional_tensors": _listed(_optional),
    "as_nested_tensors": _listed(_listed(_ref)),
    "as_int": _int,
    "as_ints": _listed(_int),
    "as_int_lists": _listed(_listed(_int)),
    "as_float": _float,
    "as_floats": _listed(_float),
    "as_float_lists": _listed(_listed(_float)),
    "as_bool": _bool,
    "as_bools": _listed(_bool),
    "as_string": _text,
    "as_strings": _listed(_text),
    "as_complex": _complex,
    "as_scalar_type": _dtype,
    "as_device": _device,
    "as_layout": lambda _: Foreign("layout"),
    "as_memory_format": lambda _: Foreign("memory format"),
})  # fmt: skip
