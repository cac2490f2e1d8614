"""What the tensors are that a model holds: parameters, which a proof takes as inputs, or constants.

A parameter is one that torch's exporter lists as such; in a model without its list, a float tensor of more
than one element whose name nobody made up. Everything else is a constant.

Exporters fold the transposition of a layer's weight into it, and make up a name for what comes of that
(``val_2``, ``onnx::MatMul_104``). Which weight it was, only its values can tell: they are compared with the
weights that the model holds as well, and with those of the other side where that is in memory. The layer
that reads it does not tell: to read another one's weight is a mistake that a proof must not hide.
"""

import re
from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import Attr, DType, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.onnx.folding import Folding
from scalify.load.onnx.model import Array, Model, OnnxNode, Tensor
from scalify.load.onnx.tensors import numbers
from scalify.load.torch_export.emit import Wire

SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
_LISTED = re.compile(
    r"^\s*\S{1,512}: (PARAMETER|BUFFER|CONSTANT_TENSOR) target='([^']{1,512})'(?: persistent=(\w{4,5}))?",
    re.MULTILINE,
)
_MADE_UP = re.compile(r"(val|_val|_v|const|tmp)_?\d+|onnx::\w+|/.*|.*_output_\d+|Constant_?\d*|_?\d+")
# Inputs of operators that say how, not what: bounds, scales, fill values.
_SETTINGS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "Resize": (1, 2, 3),
        "OneHot": (1, 2),
        "Clip": (1, 2),
        "Pad": (1, 2, 3),
        "Dropout": (1, 2),
        "Range": (0, 1, 2),
    }
)
_DTYPES: Mapping[np.dtype[np.generic], DType] = MappingProxyType(
    {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.float16): "f16"}
)
_MULTIPLY = ("MatMul", "Gemm", "Conv")


class Weights:
    """The initializers of one model on their way into its graph."""

    def __init__(self, model: Model, emit: Folding, weights: Mapping[str, Array]) -> None:
        self._model = model
        self._emit = emit
        self._roles = _roles(model.metadata.get(SIGNATURE, ""))
        self._users = _users(model)
        self._names = {tensor.name for tensor in model.initializers}
        self._lost: list[str] = []
        self._returned: dict[str, Wire] = {}
        self._by_type = self._known(weights)
        self.notes: list[str] = []

    def _known(
        self, weights: Mapping[str, Array]
    ) -> Mapping[tuple[DType, tuple[int, ...]], list[tuple[str, Array]]]:
        """Weights with names and values, by their types; of one name, what the model holds."""
        known: dict[tuple[DType, tuple[int, ...]], list[tuple[str, Array]]] = {}
        for tensor in self._model.initializers:
            values = numbers(tensor)
            if (
                values is not None
                and values.ndim == 2
                and self._role(tensor)
                and not self._is_made_up(tensor)
            ):
                known.setdefault((tensor.type.dtype, values.shape), []).append((tensor.name, values))
        for name, values in weights.items():
            if name not in self._names and values.ndim == 2 and values.dtype in _DTYPES:
                known.setdefault((_DTYPES[values.dtype], values.shape), []).append((name, values))
        return known

    def take(self, position: int) -> Iterator[tuple[str, Wire]]:
        """Every initializer by name, as what it is. Inputs count on from ``position``."""
        own: dict[str, Wire] = {}
        folded: list[tuple[int, Tensor, str]] = []
        for place, tensor in enumerate(self._model.initializers, start=position):
            layer = self._layer(tensor)
            if layer is not None:
                folded.append((place, tensor, layer))
                continue
            self._emit.at(tensor.name)
            own[tensor.name] = self._emitted(tensor, place)
        yield from own.items()
        self._say_lost()
        for place, tensor, layer in folded:
            yield tensor.name, self._transposed(tensor, layer, place, own)

    def _say_lost(self) -> None:
        """Weights whose own names are gone, and how to keep these."""
        if self._lost:
            more = " and others" if len(self._lost) > 3 else ""
            self.notes.append(
                f"{', '.join(self._lost[:3])}{more} of the ONNX file have names "
                "that its exporter made up: with optimize=False, or do_constant_folding=False of the older "
                "exporter, weights keep theirs; or verify against the model itself, in memory"
            )

    def _emitted(self, tensor: Tensor, position: int) -> Wire:
        values = numbers(tensor)
        role = self._role(tensor)
        if role is None and values is not None:
            return self._emit.array(values, tensor.type)
        if self._is_made_up(tensor):
            self._lost.append(tensor.name)
        return self._input(tensor.name, role or "buffer", tensor.type, position)

    def _input(self, name: str, role: str, type_: TensorType, position: int) -> Wire:
        attrs: dict[str, Attr] = {"name": name, "role": role, "position": position}
        return self._emit.emit("input", declared=type_, attrs=attrs)

    def _role(self, tensor: Tensor) -> str | None:
        """``parameter`` or ``buffer``; None for a constant. A weight that lost its name is no parameter:
        it must not be paired with one by its place."""
        if tensor.name in self._roles:
            return self._roles[tensor.name]
        multiplied = any(
            node.op in _MULTIPLY and node.inputs[1:2] == (tensor.name,)
            for node in self._users.get(tensor.name, ())
        )
        if multiplied and len(tensor.type.shape) > 1:
            return "buffer" if self._is_made_up(tensor) else "parameter"
        made_up = self._roles or _MADE_UP.fullmatch(tensor.name)
        if (
            made_up
            or self._only_sets(tensor.name)
            or KIND_OF[tensor.type.dtype] != "float"
            or prod(tensor.type.shape) < 2
        ):
            return None
        return "parameter"

    def _is_made_up(self, tensor: Tensor) -> bool:
        return _MADE_UP.fullmatch(tensor.name) is not None

    def _only_sets(self, name: str) -> bool:
        """Whether every node that reads a tensor takes it as a setting."""
        users = self._users.get(name, ())
        places = [
            place in _SETTINGS.get(node.op, ())
            for node in users
            for place, read in enumerate(node.inputs)
            if read == name
        ]
        return bool(places) and all(places)

    def _layer(self, tensor: Tensor) -> str | None:
        """The name of the weight that a tensor with a name made up is the transposed of, if of just one."""
        users = self._users.get(tensor.name, ())
        if not users or len(tensor.type.shape) != 2 or not self._is_made_up(tensor):
            return None
        if any(user.op != "MatMul" or user.inputs[1] != tensor.name for user in users):
            return None
        columns_first = (tensor.type.dtype, tensor.type.shape[::-1])
        values = numbers(tensor)
        same = [
            name
            for name, weight in self._by_type.get(columns_first, ())
            if values is not None and np.array_equal(weight.T, values)
        ]
        return same[0] if len(same) == 1 else None

    def _transposed(self, tensor: Tensor, name: str, position: int, own: Mapping[str, Wire]) -> Wire:
        rows, columns = tensor.type.shape
        self._emit.at(tensor.name)
        wire = own.get(name) or self._returned.get(name)
        if wire is None:
            wire = self._input(name, "parameter", TensorType(tensor.type.dtype, (columns, rows)), position)
            self._returned[name] = wire
        self.notes.append(f"{tensor.name} of the ONNX file is {name} transposed: they have the same values")
        return self._emit.transpose(wire, (1, 0))


def _roles(signature: str) -> Mapping[str, str | None]:
    """What torch's exporter lists, by name: parameters, buffers, and what it saves with neither."""
    return {
        name: None if kind == "CONSTANT_TENSOR" or persistent == "False" else kind.lower()
        for kind, name, persistent in _LISTED.findall(signature)
    }


def _users(model: Model) -> Mapping[str, tuple[OnnxNode, ...]]:
    stored = {tensor.name for tensor in model.initializers}
    users: dict[str, list[OnnxNode]] = {}
    for node in model.nodes:
        for name in stored.intersection(node.inputs):
            users.setdefault(name, []).append(node)
    return {name: tuple(nodes) for name, nodes in users.items()}
