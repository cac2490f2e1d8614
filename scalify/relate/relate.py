"""Relate two graphs: an ordered, finite inference from names, shapes and how the baseline cuts its inputs.

In: both graphs, and what the user states, which goes before anything inferred. Out: Relations. Nothing here
tries a proof, and nothing looks at the candidate's operations: of the candidate only inputs (and whether they
are used at all), outputs and the mesh are read.
"""

from collections.abc import Sequence

from scalify.ir.graph import Graph, Node
from scalify.ir.mesh import Mesh
from scalify.relate.aliases import check_aliases
from scalify.relate.decide import described
from scalify.relate.free import free_inputs
from scalify.relate.impose import impose, mesh_of
from scalify.relate.inference import Inference
from scalify.relate.model import InputRelation, Relations
from scalify.relate.pairing import distinguishes_roles, name_of, pair
from scalify.relate.results import pair_outputs, relate_outputs
from scalify.relate.stated import Stated
from scalify.relate.unrolled import relate_unrolled


def relate(baseline: Graph, candidate: Graph, stated: Stated | None = None) -> Relations:
    """How the baseline's inputs lie on the candidate's ranks, and which outputs make up which.

    Raises InvalidRelations where what is stated does not fit the graphs.
    """
    stated = stated or Stated()
    if candidate.unrolled and baseline.mesh.size == 1 and not baseline.unrolled:
        return relate_unrolled(baseline, candidate, stated)
    mesh = mesh_of(candidate, stated)
    ones, others = baseline.inputs(), candidate.inputs()
    state = Inference(baseline, candidate, mesh, distinguishes_roles(others))
    if baseline.unrolled != candidate.unrolled:
        state.undecided["mesh"] = "ranks stand side by side in one program only, as theirs differ"
        return Relations(inputs=(), outputs=(), undecided=state.undecided)
    if baseline.mesh.size not in (1, mesh.size):
        state.undecided["mesh"] = (
            f"the baseline runs on {baseline.mesh.size} ranks ({described(baseline.mesh)}), "
            f"the candidate on {mesh.size} ({described(mesh)})"
        )
        return Relations(inputs=(), outputs=(), undecided=state.undecided)
    imposed = impose(stated.inputs, state)
    pairing = pair(_without(ones, imposed.baseline), _without(others, imposed.candidate))
    found = [state.relation(one, other) for one, other in pairing.pairs]
    relations = _in_order(others, [*imposed.relations, *(relation for relation in found if relation)])
    held = {name_of(node): (node,) for node in pairing.candidate}
    free = free_inputs(pairing, held, imposed.free, state)
    pairs = pair_outputs(baseline, candidate, stated.outputs, state.undecided)
    lying = {relation.name: relation.text for relation in relations}
    outputs = relate_outputs((baseline, candidate), mesh, pairs, stated.outputs, state.undecided, lying)
    counterpart = {relation.name: relation.of[0] for relation in relations if len(set(relation.of)) == 1}
    alias_notes = check_aliases(pairs, counterpart, state.undecided)
    return Relations(
        inputs=relations,
        outputs=outputs,
        undecided=state.undecided,
        unused=tuple(name_of(node) for node in pairing.baseline),
        notes=(*_rank_notes(baseline, mesh), *pairing.notes, *state.notes(), *alias_notes),
        free=free,
    )


def _without(nodes: Sequence[Node], names: frozenset[str]) -> tuple[Node, ...]:
    return tuple(node for node in nodes if name_of(node) not in names) if names else tuple(nodes)


def _rank_notes(baseline: Graph, mesh: Mesh) -> tuple[str, ...]:
    if baseline.mesh.size > 1:
        return ("rank by rank, both programs hold the same inputs",)
    if mesh.size > 1:
        return (f"ranks are numbered with the last axis fastest: {described(mesh)}",)
    return ()


def _in_order(nodes: Sequence[Node], relations: Sequence[InputRelation]) -> tuple[InputRelation, ...]:
    by_id = {relation.candidate: relation for relation in relations}
    return tuple(by_id[node.id] for node in nodes if node.id in by_id)
