"""A module through ``make_fx``: for models of DTensors, which torch.export does not take.

The program is over each rank's local tensors: parameters and inputs that are DTensors go in as their
local parts and are made DTensors again inside, so that PyTorch's own redistribution is part of what is
recorded. Operators are those below autograd (``mm``, ``t``, ``_softmax``), not the training IR's.
"""

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.func import functional_call
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.utils import _pytree as pytree

from scalify.capture.exported import stored_values
from scalify.capture.failure import capture_failed
from scalify.capture.fx import FxReader, origin, pure_operators, tensor_type
from scalify.capture.target import Built
from scalify.ir.mesh import SINGLE, Groups, Mesh
from scalify.load.torch_export.program import Parameter, Program, Result, ValueName


def traced(
    built: Built, *, name: str, mesh: Mesh = SINGLE, groups: Callable[[], Mapping[str, Groups]] | None = None
) -> Program:
    """The records of what one call of the module does on this rank."""
    named = [*built.module.named_parameters(), *built.module.named_buffers()]
    flat, shape = pytree.tree_flatten((built.args, dict(built.kwargs)))
    places = [place for place, leaf in enumerate(flat) if isinstance(leaf, Tensor)]
    tensors = [*(tensor for _, tensor in named), *(flat[place] for place in places)]

    def run(*given: Tensor) -> list[object]:
        state = {label: again(tensor, old) for (label, old), tensor in zip(named, given, strict=False)}
        leaves = list(flat)
        for place, tensor in zip(places, given[len(named) :], strict=True):
            leaves[place] = again(tensor, flat[place])
        args, kwargs = pytree.tree_unflatten(leaves, shape)
        answer = functional_call(built.module, state, args, kwargs)
        return [local(leaf) for leaf in pytree.tree_leaves(answer)]

    scopes: dict[str, str] = {}
    graph = _trace(run, [local(tensor) for tensor in tensors], built.module, scopes)
    labels = [*((label, _role(built.module, label)) for label, _ in named)]
    given = _input_names(built)
    labels += [(given[place], "input") for place in places]
    return _program(graph, labels, scopes, name, mesh, groups() if groups else {})


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


def _input_names(built: Built) -> list[str]:
    """Of every leaf of the arguments, as torch.export names them: after what ``forward`` calls them."""
    positional = list(inspect.signature(built.module.forward).parameters)
    keyed, _ = pytree.tree_flatten_with_path((built.args, dict(built.kwargs)))
    names: list[str] = []
    for path, _ in keyed:
        by_place, first, *inner = [_key(part) for part in path]
        named = by_place == "1" or int(first) >= len(positional)
        names.append("_".join([first if named else positional[int(first)], *inner]))
    return names


def _key(part: object) -> str:
    for attribute in ("idx", "key", "name"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)


def _role(module: nn.Module, label: str) -> str:
    return "parameter" if label in dict(module.named_parameters()) else "buffer"


def _trace(
    run: Callable[..., object], tensors: list[object], module: nn.Module, scopes: dict[str, str]
) -> GraphModule:
    try:
        with _scoped(module, scopes), torch.no_grad():
            return make_fx(run, tracing_mode="fake", record_stack_traces=True)(*tensors)
    except Exception as error:
        raise capture_failed(
            error,
            what="the module cannot be traced",
            hint="call the module on these inputs by hand to see the whole report",
        ) from error


@contextmanager
def _scoped(module: nn.Module, scopes: dict[str, str]) -> Generator[None]:
    """Say of every node in which submodule it was made, by watching calls begin and end."""
    open_paths: list[tuple[str, Node | None]] = []

    def last() -> Node | None:
        mode = get_proxy_mode()
        nodes = mode.tracer.graph.nodes if mode is not None else ()
        return next(iter(reversed(nodes)), None)

    def settle(since: Node | None, until: Node | None, path: str) -> None:
        while until is not None and until is not since and until.op != "root":
            scopes.setdefault(until.name, path)
            until = until.prev

    def entered(path: str) -> Callable[..., None]:
        def hook(*_: object) -> None:
            open_paths.append((path, last()))

        return hook

    def left(*_: object) -> None:
        path, since = open_paths.pop()
        settle(since, last(), path)

    handles = [
        handle
        for path, inner in module.named_modules()
        for handle in (
            inner.register_forward_pre_hook(entered(path), prepend=True),
            inner.register_forward_hook(left),
        )
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _program(
    graph: GraphModule,
    labels: list[tuple[str, str]],
    scopes: Mapping[str, str],
    name: str,
    mesh: Mesh,
    groups: Mapping[str, Groups],
) -> Program:
    reader = FxReader(graph, MappingProxyType(dict(scopes)))
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    parameters = [_parameter(node, *labelled) for node, labelled in zip(nodes, labels, strict=True)]
    parameters += [_closed_over(graph, node) for node in graph.graph.nodes if _is_constant(graph, node)]
    return Program(
        name=name,
        origin=origin(graph),
        parameters=tuple(parameters),
        calls=reader.calls(),
        results=tuple(Result(value=output) for output in reader.outputs()),
        mesh=mesh,
        groups=groups,
        pure=pure_operators(graph),
    )


def _parameter(node: Node, label: str, role: str) -> Parameter:
    tensor = node.meta["val"]
    return Parameter(
        name=ValueName(node.name),
        label=label,
        role="parameter" if role == "parameter" else "buffer" if role == "buffer" else "input",
        type=tensor_type(tensor, label),
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
