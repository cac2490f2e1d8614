"""What the tensors are that a model holds: parameters, which a proof takes as inputs, or constants.

A parameter is one that torch's exporter lists as such; in a model without its list, a float tensor of more
than one element whose name nobody made up. Everything else is a constant. Where an exporter has folded the
transposition of a layer's weight into it, and made up a name (``val_2``, ``onnx::MatMul_104``), the weight
is named again after the layer that uses it, and the verdict says so.
"""

import re
from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType

from scalify.ir.graph import Attr, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.onnx.folding import Folding
from scalify.load.onnx.model import Model, OnnxNode, Tensor
from scalify.load.onnx.sites import scope_of
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
_MULTIPLY = ("MatMul", "Gemm", "Conv")


class Weights:
    """The initializers of one model on their way into its graph."""

    def __init__(self, model: Model, emit: Folding) -> None:
        self._model = model
        self._emit = emit
        self._roles = _roles(model.metadata.get(SIGNATURE, ""))
        self._users = _users(model)
        self._names = {tensor.name for tensor in model.initializers}
        self.notes: list[str] = []

    def take(self, position: int) -> Iterator[tuple[str, Wire]]:
        """Every initializer by name, as what it is. Inputs count on from ``position``."""
        taken: set[str] = set()
        for place, tensor in enumerate(self._model.initializers, start=position):
            self._emit.at(tensor.name)
            layer = self._layer(tensor)
            if layer is not None and layer not in taken:
                taken.add(layer)
                yield tensor.name, self._transposed(tensor, layer, place)
            else:
                yield tensor.name, self._emitted(tensor, place)

    def _emitted(self, tensor: Tensor, position: int) -> Wire:
        values = numbers(tensor)
        role = self._role(tensor)
        if role is None and values is not None:
            return self._emit.array(values, tensor.type)
        return self._input(tensor.name, role or "buffer", tensor.type, position)

    def _input(self, name: str, role: str, type_: TensorType, position: int) -> Wire:
        attrs: dict[str, Attr] = {"name": name, "role": role, "position": position}
        return self._emit.emit("input", declared=type_, attrs=attrs)

    def _role(self, tensor: Tensor) -> str | None:
        """``parameter`` or ``buffer``; None for a constant."""
        if tensor.name in self._roles:
            return self._roles[tensor.name]
        multiplied = any(
            node.op in _MULTIPLY and node.inputs[1:2] == (tensor.name,)
            for node in self._users.get(tensor.name, ())
        )
        if multiplied and len(tensor.type.shape) > 1:
            return "parameter"
        made_up = self._roles or _MADE_UP.fullmatch(tensor.name)
        if (
            made_up
            or self._only_sets(tensor.name)
            or KIND_OF[tensor.type.dtype] != "float"
            or prod(tensor.type.shape) < 2
        ):
            return None
        return "parameter"

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
        """The name of the weight that a tensor with a name made up is the transposed of, if of one."""
        users = self._users.get(tensor.name, ())
        if len(users) != 1 or len(tensor.type.shape) != 2 or not _MADE_UP.fullmatch(tensor.name):
            return None
        user = users[0]
        if user.op != "MatMul" or user.inputs[1] != tensor.name:
            return None
        name = f"{scope_of(user)}.weight"
        listed = not self._roles or self._roles.get(name) == "parameter"
        return name if listed and name not in self._names and name != ".weight" else None

    def _transposed(self, tensor: Tensor, name: str, position: int) -> Wire:
        rows, columns = tensor.type.shape
        wire = self._input(name, "parameter", TensorType(tensor.type.dtype, (columns, rows)), position)
        self.notes.append(f"{tensor.name} of the ONNX file is {name}, transposed by its exporter")
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
