"""Programs that are objects of this process: exported programs, FX graphs, and modules with their arguments.

In: what ``scalify.verify`` was given as a side. Out: its graph, on one device. An FX graph whose nodes are
PyTorch's operators with recorded types (from ``make_fx``, or what a backend of ``torch.compile`` gets from
AOTAutograd) is read as it stands; any other is run through torch.export, on the arguments that stand beside
it or on ones of the types that it records.
"""

import operator
from collections.abc import Mapping
from typing import Any, TypeGuard

import torch
from numpy.typing import NDArray
from torch import nn
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from scalify.capture.exported import export, program_of, stored_values
from scalify.capture.fx import FxReader, origin, pure_operators, tensor_type
from scalify.capture.target import Built, built
from scalify.errors import CaptureFailed
from scalify.ir.graph import Graph
from scalify.load.torch_export.program import Parameter, Program, Ref, Result, ValueName
from scalify.load.torch_export.translate import translate

_RECORDED = ("val", "example_value")
_NUMPY = frozenset({torch.float16, torch.float32, torch.float64})


def graph_of(side: object) -> Graph:
    """The graph of a program in memory."""
    if isinstance(side, ExportedProgram):
        return translate(program_of(side, name="exported"))
    if isinstance(side, GraphModule):
        return _of_fx(side)
    if isinstance(side, nn.Module):
        raise CaptureFailed(
            f"{type(side).__name__} is a module without arguments to call it with", hint="give (module, args)"
        )
    module = side if isinstance(side, Built) else built(side)
    if isinstance(module.module, GraphModule) and _is_recorded(module.module):
        return _of_fx(module.module)
    return translate(program_of(export(module), name=type(module.module).__name__))


def weights_of(side: object) -> Mapping[str, NDArray[Any]]:
    """The values of a program's parameters and buffers, by name, where it has any."""
    if isinstance(side, ExportedProgram):
        state: Mapping[str, object] = side.state_dict
    else:
        module = (
            side[0] if isinstance(side, tuple) and side else side.module if isinstance(side, Built) else side
        )
        state = module.state_dict() if isinstance(module, nn.Module) else {}
    return {name: value.detach().numpy() for name, value in state.items() if _has_values(value)}


def _has_values(value: object) -> TypeGuard[torch.Tensor]:
    """Meta and fake tensors have none."""
    plain = type(value) in (torch.Tensor, nn.Parameter)
    return plain and isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dtype in _NUMPY


def _of_fx(module: GraphModule) -> Graph:
    if _is_recorded(module):
        return translate(_program(module))
    inputs = [_recorded(node) for node in module.graph.nodes if node.op == "placeholder"]
    if not all(isinstance(value, torch.Tensor) for value in inputs):
        raise CaptureFailed(
            "the graph does not record the types of its inputs", hint="give (graph_module, args)"
        )
    tensors = tuple(
        torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        for value in inputs
        if isinstance(value, torch.Tensor)
    )
    return translate(program_of(export(Built(module=module, args=tensors, kwargs={})), name=_name(module)))


def _recorded(node: Node) -> object:
    return next((node.meta[key] for key in _RECORDED if key in node.meta), None)


def _is_recorded(module: GraphModule) -> bool:
    """Whether every call is one of PyTorch's operators and says of which type its results are."""
    for node in module.graph.nodes:
        if node.op in ("call_module", "call_method"):
            return False
        if node.op == "placeholder" and not isinstance(
            node.meta.get("val"), torch.Tensor | int | float | None
        ):
            return False
        if node.op == "call_function" and not _is_operator(node):
            return False
    return all("val" in node.meta for node in module.graph.nodes if node.op == "placeholder" and node.users)


def _is_operator(node: Node) -> bool:
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, OpOverload | HigherOrderOperator) and (
        "val" in node.meta or not node.users
    )


def _name(module: GraphModule) -> str:
    return type(module).__name__


def _program(module: GraphModule) -> Program:
    reader = FxReader(module)
    parameters: list[Parameter] = []
    for node in module.graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
            parameters.append(_parameter(node))
        elif node.op == "get_attr" and _is_tensor(held := _held(module, str(node.target))):
            parameters.append(_closed_over(module, node, held))
    calls, outputs = reader.calls(), reader.outputs()
    return Program(
        name=_name(module),
        origin=origin(module),
        parameters=tuple(parameters),
        calls=calls,
        results=tuple(Result(value=value if isinstance(value, Ref) else None) for value in outputs),
        pure=pure_operators(module),
    )


def _parameter(node: Node) -> Parameter:
    tensor = node.meta["val"]
    return Parameter(
        name=ValueName(node.name),
        label=node.name,
        role="input",
        type=tensor_type(tensor, node.name),
        contiguous=tensor.is_contiguous(),
    )


def _held(module: GraphModule, target: str) -> object:
    found: object = module
    for part in target.split("."):
        found = getattr(found, part, None)
    return found


def _is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor)


def _closed_over(module: GraphModule, node: Node, tensor: torch.Tensor) -> Parameter:
    """A parameter or buffer of the module is an input; what tracing has put there is a constant."""
    label = str(node.target)
    is_parameter = isinstance(tensor, nn.Parameter)
    is_constant = not is_parameter and (label not in _buffers(module) or "_tensor_constant" in label)
    stored = stored_values(tensor) if is_constant else None
    return Parameter(
        name=ValueName(node.name),
        label=label,
        role="parameter" if is_parameter else "buffer",
        type=tensor_type(tensor, label),
        contiguous=tensor.is_contiguous(),
        data=None if stored is None else stored.data,
        digest=None if stored is None else stored.digest,
    )


def _buffers(module: GraphModule) -> Mapping[str, torch.Tensor]:
    return dict(module.named_buffers())
