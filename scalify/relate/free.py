"""Inputs of the candidate that hold nothing of the baseline: whatever they hold, outputs have to be right.

In: what is left over when inputs are paired. Out: which of it is free, and which is undecided. An input is
free if the user says so, if nothing uses it, or if the baseline has nothing left that it could hold: of
everything there, names tell what it is. Each is an assumption that the verdict prints.
"""

from collections.abc import Mapping, Sequence

from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.relate.inference import Inference
from scalify.relate.pairing import Pairing, listed, name_of, role_of

STATED = "stated to hold nothing of the baseline: any values, others on every rank"
UNUSED = "used by nothing: any values"
LEFT_OVER = "no input is left in the baseline that they could hold: any values, others on every rank"


def free_inputs(
    pairing: Pairing, held: Mapping[str, Sequence[Node]], stated: Sequence[Node], state: Inference
) -> tuple[NodeId, ...]:
    """The free inputs, in order of the candidate; what else is left over becomes undecided.

    ``held`` are the nodes of what is left over, by name: several where ranks stand side by side.
    """
    used = _used(state.candidate)
    free = {node.id for node in stated}
    for node in stated:
        state.note(STATED, name_of(node))
    for one in pairing.candidate:
        name = name_of(one)
        nodes = [node.id for node in held[name]]
        if used.isdisjoint(nodes):
            state.note(UNUSED, name)
        elif _holds_nothing(one, pairing, state):
            state.note(LEFT_OVER, name)
        else:
            left = listed([name_of(each) for each in pairing.baseline]) or "none"
            state.undecided[f"input {name}"] = f"no counterpart; inputs left in the baseline: {left}"
            continue
        free.update(nodes)
    return tuple(node.id for node in state.candidate.inputs() if node.id in free)


def _used(graph: Graph) -> frozenset[NodeId]:
    operands = (operand for node in graph.nodes for operand in node.operands)
    return frozenset(operands) | frozenset(output.value for output in graph.outputs)


def _holds_nothing(node: Node, pairing: Pairing, state: Inference) -> bool:
    """Whether every input of the baseline that this might be is known by its name to be another one."""
    kind = KIND_OF[node.type.dtype]
    left = any(KIND_OF[other.type.dtype] == kind for other in pairing.baseline)
    guessed = any(
        KIND_OF[other.type.dtype] == kind and (not state.roles or role_of(other) == role_of(node))
        for other in pairing.guessed
    )
    return not left and not guessed
