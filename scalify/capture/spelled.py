"""Calls without a meaning in an exported program, in terms of those that have one.

In: what torch.export made. Out: the same program, in which such calls are what PyTorch itself says they do;
their parts stand at the user's lines of the call. Calls of which that is not known stay, and become opaque.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.func import functionalize
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from scalify.capture.decomposed import DECOMPOSED, has_meaning
from scalify.load.torch_export.aliasing import IGNORED, draws

_KEPT = ("stack_trace", "nn_module_stack")
_COMPOSITE = "CompositeImplicitAutograd"
# Meant in some of their uses only: with no weights, at inference.
_SOMETIMES = frozenset({
    "aten.cross_entropy_loss.default", "aten.batch_norm.default", "aten.instance_norm.default",
    "aten.softplus.default", "aten.pad.default", "aten.elu.default", "aten.round.decimals",
    "aten.linalg_vector_norm.default", "aten.einsum.default",
})  # fmt: skip


def doubtful(exported: ExportedProgram) -> bool:
    """Whether there may be calls to spell out."""
    return any(_is_doubtful(node) for node in exported.graph.nodes)


def spell(exported: ExportedProgram, unknown: frozenset[str]) -> None:
    """Spell out the calls of these names or operators, in place, where it is known how.

    An operator that has a meaning in other uses is spelled out only where it is named.
    """
    graph: Graph = exported.graph
    renamed: dict[str, str] = {}
    for node in list(graph.nodes):
        named = node.name in unknown or (str(node.target) in unknown and str(node.target) not in _SOMETIMES)
        if named and _is_doubtful(node):
            inner = _inside(node)
            if inner is not None:
                renamed |= _inlined(graph, node, inner)
    for spec in exported.graph_signature.output_specs:
        spec.arg.name = renamed.get(spec.arg.name, spec.arg.name)
    exported.graph_module.recompile()


def _is_doubtful(node: Node) -> bool:
    operator = node.target
    if not isinstance(operator, OpOverload) or operator.namespace != "aten" or str(operator) in IGNORED:
        return False
    if str(operator) in _SOMETIMES:
        return True
    known = operator in DECOMPOSED or torch._C._dispatch_has_kernel_for_dispatch_key(  # pyright: ignore[reportPrivateUsage]
        operator.name(), _COMPOSITE
    )
    return known and not has_meaning(operator) and not draws(str(operator)) and not _is_view(operator)


def _is_view(operator: OpOverload) -> bool:
    """What is written to its result is in its operand: its parts might be copies."""
    returns = operator._schema.returns  # pyright: ignore[reportPrivateUsage]
    return any(one.alias_info is not None and not one.alias_info.is_write for one in returns)


def _inside(node: Node) -> GraphModule | None:
    """What the call does, recorded on tensors without values."""
    leaves, shape = pytree.tree_flatten((node.args, node.kwargs))
    operands = _operands(node)
    values = [operand.meta.get("val") for operand in operands]
    if not all(isinstance(value, Tensor) for value in values):
        return None
    operator = cast(OpOverload, node.target)

    def run(*tensors: Tensor) -> object:
        stands = dict(zip(operands, tensors, strict=True))
        given = [stands[leaf] if isinstance(leaf, Node) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(given, shape)
        return operator(*args, **kwargs)

    # What writes to its operands goes on doing so: they may lie in each other's memory.
    writes = operator._schema.is_mutable  # pyright: ignore[reportPrivateUsage]
    with torch.no_grad(), enable_python_dispatcher():
        made = make_fx(run if writes else functionalize(run), decomposition_table=dict(DECOMPOSED))(*values)
    calls = [inner for inner in made.graph.nodes if inner.op == "call_function"]
    closes_over = any(inner.op == "get_attr" for inner in made.graph.nodes)
    again = any(inner.target is operator for inner in calls)
    return None if closes_over or again else made


def _operands(node: Node) -> list[Node]:
    """Each once, however often it is given."""
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    return list(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Node)))


def _inlined(graph: Graph, node: Node, inner: GraphModule) -> dict[str, str]:
    """The parts in the call's place; what its results are called now."""
    values: dict[Node, Node] = {}
    takes = iter(_operands(node))
    answer: Any = None
    with graph.inserting_before(node):
        for part in inner.graph.nodes:
            if part.op == "placeholder":
                values[part] = next(takes)
            elif part.op == "output":
                answer = _answer(graph, node, part.args[0], values)
            else:
                values[part] = _copied(graph, node, part, values)
    results: Mapping[Node, object] = _results(node, answer)
    for old, new in results.items():
        old.replace_all_uses_with(cast(Node, new))
        graph.erase_node(old)
    if node not in results:
        graph.erase_node(node)
    return {old.name: new.name for old, new in results.items() if isinstance(new, Node)}


def _answer(graph: Graph, node: Node, returned: object, values: Mapping[Node, Node]) -> object:
    if isinstance(returned, list | tuple):
        return [_own(graph, node, leaf, values) for leaf in cast("Sequence[object]", returned)]
    return _own(graph, node, returned, values)


def _copied(graph: Graph, node: Node, part: Node, values: Mapping[Node, Node]) -> Node:
    made = graph.node_copy(part, lambda operand: values[operand])
    made.meta = {"val": part.meta.get("val"), **{key: node.meta[key] for key in _KEPT if key in node.meta}}
    return made


def _own(graph: Graph, node: Node, leaf: object, values: Mapping[Node, Node]) -> object:
    """A result in memory of its own, as the whole call's is, though the last of its parts may be a view."""
    if not isinstance(leaf, Node):
        return leaf
    made = values[leaf]
    if leaf.op == "call_function" and not (isinstance(leaf.target, OpOverload) and _is_view(leaf.target)):
        return made
    if _is_composite(node):
        return made
    copy = graph.call_function(torch.ops.aten.clone.default, (made,))
    copy.meta = {"val": leaf.meta.get("val"), **{key: node.meta[key] for key in _KEPT if key in node.meta}}
    return copy


def _is_composite(node: Node) -> bool:
    """PyTorch runs just these parts itself: what is a view there is one here."""
    operator = cast(OpOverload, node.target)
    return operator not in DECOMPOSED


def _results(node: Node, answer: object) -> dict[Node, object]:
    """What stands for the call, or for each of its results that is used."""
    if isinstance(answer, Node):
        return {node: answer}
    parts = cast("Sequence[object]", answer or ())
    return {user: parts[cast(int, user.args[1])] for user in list(node.users)}
