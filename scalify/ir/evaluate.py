"""Run a graph in NumPy on all ranks of its mesh at once.

In: a well-formed Graph and its inputs. Out: each output's value on every rank. A node's value is a list of
arrays, one per rank; a collective acts across that list. Over the reals, floats are float64 whatever the
graph declares; with ``declared`` each node's result is rounded once to what its dtype can hold. Ranks whose
operands are the same arrays share one result, so that what is replicated is computed once. Memory is the
caller's business: a value is dropped after its last use, but nothing is cut into pieces.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from scalify.errors import ScalifyError
from scalify.ir.check import place
from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.ir.mesh import RankInt
from scalify.ir.ops import OPS
from scalify.ir.ops.meaning.storage import rounded, stored
from scalify.ir.ops.spec import Array, Call, Meaning

Inputs = Mapping[str, Array | Sequence[Array]]
PerRank = list[Array]
StandIn = Callable[[Node, Sequence[PerRank]], PerRank]
"""What a node without a meaning is taken to be, from its operands on every rank."""
Instead = Callable[[Sequence[PerRank]], PerRank]
"""Computes a node in another way than its op says, from its operands on every rank."""
Seen = Callable[[Node, PerRank], PerRank]
"""Sees the result of every node, and says what is to be taken for it."""


def evaluate(
    graph: Graph,
    inputs: Inputs,
    *,
    declared: bool = False,
    stand_in: StandIn | None = None,
    seen: Seen | None = None,
    instead: Mapping[NodeId, Instead] | None = None,
) -> dict[str, PerRank]:
    """The outputs by name, each as one array per rank.

    An input is one array, the same on all ranks, or a sequence of one array per rank. Raises ScalifyError
    for an input that is missing or of another shape, and for nodes without a meaning (opaque, random) unless
    there is a ``stand_in``.
    """
    values: dict[NodeId, PerRank] = {}
    nodes = graph.by_id()
    last_use = _last_use(graph)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [values[operand] for operand in node.operands]
            if instead and node.id in instead:
                results = instead[node.id](operands)
            else:
                results = _run(graph, node, nodes, operands, inputs, stand_in)
            held = _held(node, results, declared=declared)
            values[node.id] = held if seen is None else seen(node, held)
            for operand in {*node.operands, node.id}:
                if last_use.get(operand, node.id) == node.id:
                    del values[operand]
    return {output.name: values[output.value] for output in graph.outputs}


def _last_use(graph: Graph) -> dict[NodeId, NodeId | None]:
    """The last node that reads each value; None where the value is a result of the graph."""
    last: dict[NodeId, NodeId | None] = {}
    for node in graph.nodes:
        last.update(dict.fromkeys(node.operands, node.id))
    last.update(dict.fromkeys(output.value for output in graph.outputs))
    return last


def _run(
    graph: Graph,
    node: Node,
    nodes: Mapping[NodeId, Node],
    operands: list[PerRank],
    inputs: Inputs,
    stand_in: StandIn | None,
) -> PerRank:
    if node.op == "input":
        return _given(node, inputs, graph.mesh.size)
    spec = OPS[node.op]
    call = Call(
        op=node.op,
        operands=tuple(nodes[operand].type for operand in node.operands),
        attrs=node.attrs,
        mesh=graph.mesh,
        declared=node.type,
    )
    if spec.across is not None:
        return spec.across(call, operands[0])
    if spec.meaning is not None:
        return _on_every_rank(node, call, spec.meaning, operands)
    if stand_in is not None:
        return stand_in(node, operands)
    what = node.attrs["target"] if node.op == "opaque" else node.op
    raise ScalifyError(
        f"{place(node)} cannot be run: {what!r} has no meaning here",
        hint="verify without running the graph, or define the op by ops that have a meaning",
    )


def _on_every_rank(node: Node, call: Call, meaning: Meaning, operands: list[PerRank]) -> PerRank:
    by_rank = node.op == "rank" or any(map(_differs, node.attrs.values()))
    done: dict[tuple[int, ...], Array] = {}
    results: PerRank = []
    for rank in range(call.mesh.size):
        arrays = [operand[rank] for operand in operands]
        key = (*map(id, arrays), rank if by_rank else -1)
        if key not in done:
            own = replace(call, rank=rank) if by_rank else call
            done[key] = np.asarray(meaning(own, arrays))
        results.append(done[key])
    return results


def _differs(value: Attr) -> bool:
    return isinstance(value, RankInt) or (isinstance(value, tuple) and any(map(_differs, value)))


def _held(node: Node, results: PerRank, *, declared: bool) -> PerRank:
    """In the form in which values are held, rounded where asked; ranks that shared an array still do."""
    held: dict[int, Array] = {}
    for result in results:
        if id(result) not in held:
            value = stored(result, node.type.dtype)
            held[id(result)] = rounded(value, node.type.dtype) if declared else value
    return [held[id(result)] for result in results]


def _given(node: Node, inputs: Inputs, ranks: int) -> PerRank:
    name = str(node.attrs["name"])
    if name not in inputs:
        raise ScalifyError(
            f"no value is given for input {name!r}", hint=f"given: {', '.join(inputs) or 'none'}"
        )
    given = inputs[name]
    arrays = [given] * ranks if isinstance(given, np.ndarray) else list(given)
    if len(arrays) != ranks:
        raise ScalifyError(
            f"input {name!r} is given for {len(arrays)} ranks of {ranks}", hint="give one array per rank"
        )
    for array in arrays:
        if array.shape != node.type.shape:
            raise ScalifyError(
                f"input {name!r} has shape {list(array.shape)}, not {list(node.type.shape)}",
                hint="give each rank its own shard",
            )
    return arrays
