"""Read a serialized ONNX model: bytes in, a ``Model`` out, or one line that says what is wrong with the file.

Nothing in the file is trusted: messages are parsed by protobuf against our own schema, fields unknown to it
are refused, and tensors in other files are never looked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import prod
from types import MappingProxyType
from typing import Any

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.graph import TensorType
from scalify.load.onnx.model import (
    ELEMENT_TYPES,
    MAX_NAME,
    MAX_NODES,
    Function,
    Model,
    OnnxNode,
    Parameter,
    Tensor,
    Value,
    damaged,
)
from scalify.load.onnx.schema import message_class
from scalify.load.onnx.tensors import raw_bytes

MAX_DIMENSIONS = 32
MAX_ELEMENTS = 2**62
EXTERNAL = 1
FIXED = "export with fixed shapes (no dynamic_axes or dynamic_shapes)"


def read_model(data: bytes) -> Model:
    """The model in ``data``."""
    message = _parsed(data)
    graph = message.graph
    count = len(graph.nodes) + sum(len(function.nodes) for function in message.functions)
    if count > MAX_NODES:
        raise InvalidGraph(f"the model has {count} nodes", hint=f"at most {MAX_NODES} are read")
    if graph.sparse:
        raise UnsupportedFormat("the model has sparse weights", hint="export dense ones")
    initializers = tuple(_tensor(tensor) for tensor in graph.initializers)
    stored = {tensor.name for tensor in initializers}
    if len(stored) < len(initializers):
        raise damaged("two stored tensors have one name")
    return Model(
        name=_name(graph.name),
        origin=sha256(data).hexdigest()[:16],
        opsets=_opsets(message.opsets),
        nodes=tuple(_node(node) for node in graph.nodes),
        initializers=initializers,
        inputs=tuple((_name(info.name), _stated(info)) for info in graph.inputs if info.name not in stored),
        outputs=tuple(_name(info.name) for info in graph.outputs),
        types=_types((*graph.values, *graph.outputs)),
        functions=_functions(message.functions),
        metadata=_entries(graph.metadata),
    )


def _parsed(data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        message = message_class("Model").FromString(data)
    except DecodeError as error:
        raise InvalidGraph(
            f"not a whole ONNX model: {error}", hint="the file is damaged; write it again"
        ) from None
    if not message.HasField("graph") or not message.opsets:
        raise damaged("it has no graph, or says no version of the operators")
    whole = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != whole:
        _refuse_unknown_fields(message_class("Model").FromString(data))
    return message


def _refuse_unknown_fields(message: Any) -> None:
    for path, number in _unknown_fields(message, "model"):
        raise UnsupportedFormat(
            f"{path} sets field {number} of the ONNX format, which this release does not know",
            hint="its meaning could change the result; upgrade scalify or export for an older version",
        )


def _unknown_fields(message: Any, path: str) -> Iterator[tuple[str, int]]:
    from google.protobuf.unknown_fields import UnknownFieldSet

    for unknown in UnknownFieldSet(message):
        yield path, unknown.field_number
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.is_repeated else (value,):
            yield from _unknown_fields(part, f"{path}, {field.name}")


def _name(text: str) -> str:
    if len(text) > MAX_NAME:
        raise damaged(f"a name of {len(text)} letters: {text[:40]}...")
    return text


def _opsets(opsets: Sequence[Any]) -> Mapping[str, int]:
    versions = {"" if opset.domain == "ai.onnx" else _name(opset.domain): opset.version for opset in opsets}
    return MappingProxyType(versions)


def _entries(entries: Sequence[Any]) -> Mapping[str, str]:
    return MappingProxyType({entry.key: entry.value for entry in entries})


def _node(message: Any) -> OnnxNode:
    attributes: dict[str, Value] = {}
    for attribute in message.attributes:
        if attribute.name in attributes:
            raise damaged(f"{message.op} {message.name} has the attribute {attribute.name} twice")
        attributes[_name(attribute.name)] = _attribute(attribute, f"{message.op} {message.name}")
    return OnnxNode(
        name=_name(message.name),
        domain="" if message.domain == "ai.onnx" else _name(message.domain),
        op=_name(message.op),
        overload=_name(message.overload),
        inputs=tuple(map(_name, message.inputs)),
        outputs=tuple(map(_name, message.outputs)),
        attributes=MappingProxyType(attributes),
        metadata=_entries(message.metadata),
    )


def _attribute(message: Any, where: str) -> Value:
    """By the stated kind: a field that is not set has its default there."""
    if message.reference:
        return Parameter(name=_name(message.reference))
    match message.type:
        case 1:
            return float(message.f)
        case 2:
            return int(message.i)
        case 3:
            return message.s.decode("utf-8", "surrogateescape")
        case 4:
            return _constant(message.t, where)
        case 6:
            return tuple(message.floats)
        case 7:
            return tuple(message.ints)
        case 8:
            return tuple(part.decode("utf-8", "surrogateescape") for part in message.strings)
        case 5 | 10:
            raise UnsupportedFormat(
                f"{where} holds a graph of its own (If, Loop, Scan): which part runs depends on data",
                hint="export the model without control flow, for one fixed case",
            )
        case kind:
            raise UnsupportedFormat(
                f"attribute {message.name} of {where} is of kind {kind}, which is not read",
                hint="export numbers, texts and dense tensors",
            )


def _constant(message: Any, where: str) -> Tensor:
    tensor = _tensor(message)
    if tensor.raw is None:
        raise UnsupportedFormat(
            f"the values of a constant of {where} lie in another file", hint="save constants in the model"
        )
    return tensor


def _tensor(message: Any) -> Tensor:
    type_ = _tensor_type(message.data_type, tuple(message.dims), f"tensor {_name(message.name)}")
    if message.segment:
        raise UnsupportedFormat(f"tensor {message.name} is in segments", hint="write it whole")
    raw = None if message.data_location == EXTERNAL else raw_bytes(message, type_)
    return Tensor(name=message.name, type=type_, raw=raw)


def _tensor_type(element: int, sizes: tuple[int, ...], what: str) -> TensorType:
    if element not in ELEMENT_TYPES:
        raise UnsupportedFormat(
            f"{what} has element type {element}, which is not read", hint="numbers of 8 bits or more are"
        )
    if (
        len(sizes) > MAX_DIMENSIONS
        or min(sizes, default=0) < 0
        or prod(max(1, n) for n in sizes) > MAX_ELEMENTS
    ):
        raise damaged(f"{what} has the shape {list(sizes)[:MAX_DIMENSIONS]}")
    return TensorType(ELEMENT_TYPES[element], sizes)


def _stated(info: Any) -> TensorType:
    """The type of an input, which has to be there."""
    if not info.type.HasField("tensor"):
        raise UnsupportedFormat(f"input {info.name} is no dense tensor", hint="export tensors only")
    if not info.type.tensor.HasField("shape"):
        raise UnsupportedFormat(f"input {info.name} has no shape", hint=FIXED)
    for dim in info.type.tensor.shape.dims:
        if dim.symbol:
            raise UnsupportedFormat(
                f"input {info.name} has a dimension {dim.symbol!r} of any size", hint=FIXED
            )
    sizes = tuple(dim.size for dim in info.type.tensor.shape.dims)
    return _tensor_type(info.type.tensor.element, sizes, f"input {info.name}")


def _types(infos: Sequence[Any]) -> Mapping[str, TensorType]:
    """Stated types of values, of those whose sizes are all numbers."""
    types: dict[str, TensorType] = {}
    for info in infos:
        if not info.type.HasField("tensor") or not info.type.tensor.HasField("shape"):
            continue
        tensor = info.type.tensor
        sizes = tuple(dim.size for dim in tensor.shape.dims)
        symbolic = any(dim.symbol or dim.size <= 0 for dim in tensor.shape.dims)
        if tensor.element in ELEMENT_TYPES and not symbolic:
            types[info.name] = _tensor_type(tensor.element, sizes, f"value {info.name}")
    return MappingProxyType(types)


def _functions(functions: Sequence[Any]) -> Mapping[tuple[str, str, str], Function]:
    found: dict[tuple[str, str, str], Function] = {}
    for function in functions:
        key = (_name(function.domain), _name(function.name), _name(function.overload))
        if key in found:
            raise damaged(f"two functions are called {'.'.join(key)}")
        found[key] = Function(
            inputs=tuple(map(_name, function.inputs)),
            outputs=tuple(map(_name, function.outputs)),
            attributes=frozenset((*function.attributes, *(entry.name for entry in function.defaults))),
            defaults=MappingProxyType(
                {entry.name: _attribute(entry, f"function {function.name}") for entry in function.defaults}
            ),
            nodes=tuple(_node(node) for node in function.nodes),
            opsets=_opsets(function.opsets),
        )
    return MappingProxyType(found)
