"""Mistakes in what is computed: divisors, scales, terms that are left out, values that are out of date."""

import re
from typing import cast

from graph_edits import Edit, readers
from wrong_collectives import SUMS, Mistakes

from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF

NOT_COMPUTED = frozenset({"input", "constant", "iota", "rank", "random"})
WRITES = frozenset({"update_slice", "dynamic_update_slice", "index_put", "scatter"})
UNARY = frozenset({"tanh", "silu", "gelu", "sigmoid", "relu", "exp", "log", "rsqrt", "sqrt", "square", "neg"})


def wrong_divisor(graph: Graph) -> Mistakes:
    """A number by which is multiplied or divided counts ranks (or tokens) once too often or not at all."""
    nodes = graph.by_id()
    for node in graph.nodes:
        for operand in node.operands if node.op in ("mul", "div") else ():
            data = nodes[operand].attrs.get("data")
            is_number = nodes[operand].op == "constant" and KIND_OF[nodes[operand].type.dtype] == "float"
            if is_number and isinstance(data, tuple) and len(data) == 1 and data[0]:
                for factor in (graph.mesh.size if graph.mesh.size > 1 else 2, 0.5):
                    edit = Edit(graph)
                    other = edit.before(
                        node.id,
                        "constant",
                        shape=nodes[operand].type.shape,
                        dtype=nodes[operand].type.dtype,
                        data=(cast(float, data[0]) * factor,),
                    )
                    operands = tuple(other if each == operand else each for each in node.operands)
                    edit.change(node.id, operands=operands)
                    yield f"{node.id} by {factor}", edit.done()
        if node.op == "reduce" and node.attrs["kind"] in ("sum", "mean"):
            edit = Edit(graph)
            edit.change(node.id, attrs={"kind": "mean" if node.attrs["kind"] == "sum" else "sum"})
            yield f"{node.id} kind", edit.done()


def divided_by_ranks(graph: Graph) -> Mistakes:
    """A sum over ranks is divided by how many there are, or multiplied."""
    for node in graph.nodes:
        if node.op in SUMS:
            count = float(len(cast(tuple[tuple[int, ...], ...], node.attrs["groups"])[0]))
            for op in ("div", "mul"):
                edit = Edit(graph)
                number = edit.after(node.id, "constant", shape=(), dtype=node.type.dtype, data=(count,))
                made = edit.after(number, op, node.id, number)
                edit.read_instead(node.id, made)
                yield f"{node.id} {op} {count:g}", edit.done()


def scale_twice(graph: Graph) -> Mistakes:
    """A factor is applied again."""
    for node in graph.nodes:
        for number in _numbers(graph, node):
            edit = Edit(graph)
            edit.read_instead(node.id, edit.after(node.id, node.op, node.id, number))
            yield f"{node.id} again", edit.done()
        if node.op == "attention":
            scale = cast(float, node.attrs["scale"])
            for other in (scale * scale, 1.0):
                edit = Edit(graph)
                edit.change(node.id, attrs={"scale": other})
                yield f"{node.id} scale {other:g}", edit.done()


def scale_never(graph: Graph) -> Mistakes:
    """A factor is left out."""
    for node in graph.nodes:
        for number in _numbers(graph, node):
            (value,) = (operand for operand in node.operands if operand != number)
            edit = Edit(graph)
            edit.read_instead(node.id, value)
            yield f"{node.id} left out", edit.done()


def _numbers(graph: Graph, node: Node) -> tuple[NodeId, ...]:
    """The constant that a value is multiplied with or divided by, if that is no whole tensor of ones."""
    if node.op not in ("mul", "div") or KIND_OF[node.type.dtype] != "float":
        return ()
    kinds = {each.id: each for each in graph.nodes if each.id in node.operands}
    if len(kinds) != 2 or (node.op == "div" and kinds[node.operands[1]].op != "constant"):
        return ()
    return tuple(
        operand
        for operand in node.operands
        if kinds[operand].op == "constant" and kinds[operand].attrs.get("data") not in ((1.0,), (1,))
    )


def dropped_term(graph: Graph) -> Mistakes:
    """One of two addends (a bias, a residual, one way by which a gradient comes) is left out."""
    types = {node.id: node.type for node in graph.nodes}
    for node in graph.nodes:
        if node.op in ("add", "sub") and KIND_OF[node.type.dtype] == "float" and node.type.shape:
            for operand in node.operands:
                if types[operand] == node.type:
                    edit = Edit(graph)
                    edit.read_instead(node.id, operand)
                    yield f"{node.id} is {operand} alone", edit.done()


def dropped_operation(graph: Graph) -> Mistakes:
    """A cap, a gate, an activation, a weight of a norm is left out: what it was applied to stands for it."""
    types = {node.id: node.type for node in graph.nodes}
    nodes = graph.by_id()
    for node in graph.nodes:
        if KIND_OF[node.type.dtype] != "float":
            continue
        applied = node.op in UNARY or node.op in ("softmax", "rms_norm", "layer_norm")
        weighted = node.op == "mul" and all(nodes[operand].op != "constant" for operand in node.operands)
        for operand in node.operands if applied or weighted else ():
            if types[operand] == node.type and nodes[operand].op != "constant":
                edit = Edit(graph)
                edit.read_instead(node.id, operand)
                yield f"{node.id} is {operand}", edit.done()


def stale_value(graph: Graph) -> Mistakes:
    """One reader reads a value as it was before its last change: an operation too early."""
    types = {node.id: node.type for node in graph.nodes}
    for node in graph.nodes:
        same = [operand for operand in node.operands if types[operand] == node.type]
        users = readers(graph, node.id)
        if node.op in NOT_COMPUTED or not same or len(users) < 2 or not node.type.shape:
            continue
        for user in users:
            edit = Edit(graph)
            edit.read_instead(node.id, same[0], [user.id])
            yield f"{user.id} reads {same[0]}, not {node.id}", edit.done()


def lost_write(graph: Graph) -> Mistakes:
    """What was written in place is not seen."""
    for node in graph.nodes:
        if node.op in WRITES:
            edit = Edit(graph)
            edit.read_instead(node.id, node.operands[0])
            yield node.id, edit.done()


def wrong_weight(graph: Graph) -> Mistakes:
    """Another parameter of the same shape is read: of another layer, or one that should be tied is not."""
    given = [node for node in graph.inputs() if KIND_OF[node.type.dtype] == "float"]
    for node in given:
        for other in given:
            if other.id != node.id and other.type == node.type:
                for user in readers(graph, node.id):
                    edit = Edit(graph)
                    edit.read_instead(node.id, other.id, [user.id])
                    yield f"{user.id} reads {other.id}", edit.done()


def wrong_stage(graph: Graph) -> Mistakes:
    """A layer reads what the layer before it read."""
    entering: dict[int, list[NodeId]] = {}
    layers = {node.id: _layer(node) for node in graph.nodes}
    types = {node.id: node.type for node in graph.nodes}
    for node in graph.nodes:
        for operand in node.operands:
            own, before = layers[node.id], layers[operand]
            crosses = own is not None and own != before and types[operand].shape
            if (
                crosses
                and own is not None
                and KIND_OF[types[operand].dtype] == "float"
                and operand not in (each.id for each in graph.inputs())
            ):
                entering.setdefault(own, []).append(operand)
    for layer, values in entering.items():
        for value in dict.fromkeys(values):
            for other in dict.fromkeys(entering.get(layer - 1, ())):
                if types[other] == types[value] and other != value:
                    edit = Edit(graph)
                    users = [each.id for each in readers(graph, value) if layers[each.id] == layer]
                    edit.read_instead(value, other, users)
                    yield f"layer {layer} reads {other}, not {value}", edit.done()


def _layer(node: Node) -> int | None:
    found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", node.scope)
    return int(found[1]) if found else None


def wrong_axis(graph: Graph) -> Mistakes:
    """A softmax, a norm or a sum is along another dimension."""
    for node in graph.nodes:
        axis = node.attrs.get("axis")
        if node.op in ("softmax", "log_softmax", "cumsum", "argmax") and isinstance(axis, int):
            for other in range(len(node.type.shape)):
                if other != axis:
                    edit = Edit(graph)
                    edit.change(node.id, attrs={"axis": other})
                    yield f"{node.id} along {other}", edit.done()
        axes = node.attrs.get("axes")
        if node.op == "reduce" and isinstance(axes, tuple) and len(axes) == 1:
            for other in range(len(node.type.shape) + 1):
                if (other,) != axes:
                    edit = Edit(graph)
                    edit.change(node.id, attrs={"axes": (other,)})
                    yield f"{node.id} along {other}", edit.done()


def wrong_epsilon(graph: Graph) -> Mistakes:
    """A norm keeps away from zero by another number."""
    nodes = graph.by_id()
    for node in graph.nodes:
        if "eps" in node.attrs:
            edit = Edit(graph)
            edit.change(node.id, attrs={"eps": cast(float, node.attrs["eps"]) * 100})
            yield node.id, edit.done()
        if node.op == "rsqrt" and nodes[node.operands[0]].op == "add":
            edit = Edit(graph)
            edit.change(node.id, operands=nodes[node.operands[0]].operands[:1])
            yield f"{node.id} without", edit.done()
