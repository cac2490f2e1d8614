"""A module through ``make_fx``: for models of DTensors and for gradients, which torch.export does not take.

The program is over each rank's local tensors: parameters and inputs that are DTensors go in as their
local parts and are made DTensors again inside, so that PyTorch's own redistribution is part of what is
recorded. Operators are those below autograd (``mm``, ``t``, ``_softmax``), not the training IR's.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeVar

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.func import functional_call
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from scalify.capture.decomposed import DECOMPOSED
from scalify.capture.exported import stored_values
from scalify.capture.failure import capture_failed, located
from scalify.capture.fx import FxReader, origin, pure_operators, tensor_type
from scalify.capture.gradients import cotangents, gradients
from scalify.capture.target import Built
from scalify.capture.watch import Watch
from scalify.errors import CaptureFailed
from scalify.ir.mesh import SINGLE, Mesh
from scalify.load.torch_export.program import Parameter, Program, Result, ValueName

Made = TypeVar("Made")
RECORDED = "recorded below autograd: torch.export does not see the gradients or messages in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A tensor that the program takes: what it is called, and the user's own."""

    label: str
    role: Literal["input", "parameter", "buffer"]
    tensor: Tensor

    @property
    def wants_gradient(self) -> bool:
        """Whether autograd is to know of it."""
        return self.tensor.requires_grad and self.tensor.is_floating_point()


def traced(
    built: Built,
    *,
    name: str,
    mesh: Mesh = SINGLE,
    backward: bool = False,
    differentiates: bool = False,
) -> Program:
    """The records of what one call of the module does on this rank.

    ``backward``: gradients are results too. ``differentiates``: the module asks for gradients itself.
    """
    step = _Step(built, learns=backward or differentiates)
    watch = Watch(built.module)
    asked = _traceable(step, lambda: cotangents(_tried(step, watch))) if backward else ()
    labels: list[str] = []

    def run(*given: Tensor) -> list[object]:
        leaves = step.leaves(given)
        with watch:
            results = step.results(leaves)
            if backward:
                results += gradients(step.given, leaves, results, given[len(leaves) :])
            labels[:] = [label for label, _ in results]
            return [local(value) for _, value in results]

    takes = [*step.given, *(Given(label=one.label, role="input", tensor=one.like) for one in asked)]
    tensors = [local(given.tensor) for given in takes]
    graph = _traceable(step, lambda: _recorded(run, tensors))
    reader = FxReader(graph, MappingProxyType(watch.scopes), MappingProxyType(watch.stacks))
    program = _program(graph, reader, takes, labels, name, mesh)
    return replace(program, notes=(RECORDED,)) if differentiates else program


class _Step:
    """One call of the module, as a function of the tensors that it takes."""

    def __init__(self, built: Built, *, learns: bool) -> None:
        self.learns = learns
        self._built = built
        self._flat, self._shape = pytree.tree_flatten((built.args, dict(built.kwargs)))
        self._places = [place for place, leaf in enumerate(self._flat) if isinstance(leaf, Tensor)]
        parameters, buffers = list(built.module.named_parameters()), list(built.module.named_buffers())
        names = _input_names(built)
        self._state = [label for label, _ in [*parameters, *buffers]]
        self.given = [
            *(Given(label=label, role="parameter", tensor=tensor) for label, tensor in parameters),
            *(Given(label=label, role="buffer", tensor=tensor) for label, tensor in buffers),
            *(Given(label=names[at], role="input", tensor=self._flat[at]) for at in self._places),
        ]

    def leaves(self, given: Sequence[Tensor]) -> list[Tensor]:
        """The given tensors, those that autograd is to know of as its leaves."""
        if not self.learns:
            return list(given)
        return [
            tensor.detach().requires_grad_() if one.wants_gradient else tensor
            for one, tensor in zip(self.given, given, strict=False)
        ]

    def results(self, leaves: list[Tensor]) -> list[tuple[str, object]]:
        """What the module gives, flat, each with its name."""
        whole = [again(tensor, one.tensor) for one, tensor in zip(self.given, leaves, strict=True)]
        state = dict(zip(self._state, whole, strict=False))
        flat = list(self._flat)
        for place, tensor in zip(self._places, whole[len(self._state) :], strict=True):
            flat[place] = tensor
        args, kwargs = pytree.tree_unflatten(flat, self._shape)
        answer = functional_call(self._built.module, state, args, kwargs)
        if isinstance(answer, dict) and not any(map(_is_nested, answer.values())):
            return [(str(key), value) for key, value in answer.items()]
        return [(f"output_{place}", leaf) for place, leaf in enumerate(pytree.tree_leaves(answer))]


def local(value: object) -> object:
    """This rank's part of a DTensor; anything else as it is."""
    return value.to_local().detach() if isinstance(value, DTensor) else value


def again(tensor: Tensor, like: object) -> Tensor:
    """A local part as the DTensor that it is a part of."""
    if not isinstance(like, DTensor):
        return tensor
    return DTensor.from_local(
        tensor, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )


def _is_nested(value: object) -> bool:
    return not pytree.tree_is_leaf(value)


def _input_names(built: Built) -> list[str]:
    """Of every leaf of the arguments, as torch.export names them: after what ``forward`` calls them."""
    positional, rest = _positional(built)
    keyed, _ = pytree.tree_flatten_with_path((built.args, dict(built.kwargs)))
    names: list[str] = []
    for path, _ in keyed:
        by_place, first, *inner = [_key(part) for part in path]
        if by_place == "1":
            names.append("_".join([first, *inner]))
        elif int(first) < len(positional):
            names.append("_".join([positional[int(first)], *inner]))
        else:
            names.append("_".join([rest, str(int(first) - len(positional)), *inner]))
    return names


def _positional(built: Built) -> tuple[list[str], str]:
    """What ``forward`` calls its arguments, and those that come after them."""
    taken = inspect.signature(built.module.forward).parameters.values()
    rest = [one.name for one in taken if one.kind is inspect.Parameter.VAR_POSITIONAL]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in taken if one.kind not in variable], rest[0] if rest else "args"


def _key(part: object) -> str:
    for attribute in ("idx", "key", "name"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)


def _tried(step: _Step, watch: Watch) -> list[tuple[str, object]]:
    """The results of a call of which nothing is recorded."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, watch:
        tensors = [local(given.tensor) for given in step.given]
        faked = [mode.from_tensor(tensor) for tensor in tensors if isinstance(tensor, Tensor)]
        return step.results(step.leaves(faked))


def _traceable(step: _Step, run: Callable[[], Made]) -> Made:
    """What fails here is the user's to put right."""
    attention = sdpa_kernel(SDPBackend.MATH) if step.learns else nullcontext()
    try:
        with warnings.catch_warnings(), attention, torch.set_grad_enabled(step.learns):
            warnings.simplefilter("ignore")
            return run()
    except CaptureFailed as error:
        raise located(error) from error
    except Exception as error:
        raise capture_failed(
            error,
            what="the module cannot be traced",
            hint="call the module on these inputs by hand to see the whole report",
        ) from error


def _recorded(run: Callable[..., object], tensors: list[object]) -> GraphModule:
    return make_fx(run, tracing_mode="fake", decomposition_table=dict(DECOMPOSED))(*tensors)


def _program(
    graph: GraphModule,
    reader: FxReader,
    takes: list[Given],
    labels: list[str],
    name: str,
    mesh: Mesh,
) -> Program:
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    parameters = [_parameter(node, given) for node, given in zip(nodes, takes, strict=True)]
    parameters += [_closed_over(graph, node) for node in graph.graph.nodes if _is_constant(graph, node)]
    calls, outputs = reader.calls(), reader.outputs()
    return Program(
        name=name,
        origin=origin(graph),
        parameters=tuple(parameters),
        calls=calls,
        results=tuple(Result(value=value, label=label) for value, label in zip(outputs, labels, strict=True)),
        mesh=mesh,
        pure=pure_operators(graph),
    )


def _parameter(node: Node, given: Given) -> Parameter:
    tensor = node.meta["val"]
    return Parameter(
        name=ValueName(node.name),
        label=given.label,
        role=given.role,
        type=tensor_type(tensor, given.label),
        contiguous=tensor.is_contiguous(),
    )


def _is_constant(graph: GraphModule, node: Node) -> bool:
    return node.op == "get_attr" and isinstance(getattr(graph, str(node.target), None), Tensor)


def _closed_over(graph: GraphModule, node: Node) -> Parameter:
    tensor = getattr(graph, str(node.target))
    stored = stored_values(tensor)
    return Parameter(
        name=ValueName(node.name),
        label=str(node.target),
        role="buffer",
        type=tensor_type(tensor, str(node.target)),
        contiguous=tensor.is_contiguous(),
        data=stored.data,
        digest=stored.digest,
    )
