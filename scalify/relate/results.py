"""Which outputs make up which, and in which layouts they may do so.

In: both graphs and which inputs are paired. Out: a relation per output, with every clean layout its shapes
allow: which of them holds is for the proof to say. Results that take over the buffers of inputs must take
over the same ones on both sides.
"""

from collections.abc import Mapping, MutableMapping
from functools import cache

from scalify.ir.graph import Graph, NodeId, Output, TensorType
from scalify.ir.mesh import Mesh
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.decide import decide, shapes
from scalify.relate.layouts import index_of, layouts, rank_by_rank, text_of
from scalify.relate.model import OutputRelation

Choices = tuple[tuple[str, IndexMap], ...]


@cache
def choices_of(whole: Shape, local: Shape, mesh: Mesh, baseline_ranks: int) -> Choices:
    """All clean layouts in which ``local`` on every rank makes up ``whole``."""
    if baseline_ranks > 1:
        same = whole == local and baseline_ranks == mesh.size
        return (("the same on each rank", rank_by_rank(whole, mesh.size)),) if same else ()
    return tuple(
        (text_of(layout), index_of(layout, local, whole, mesh, {})) for layout in layouts(whole, local, mesh)
    )


def paired_outputs(
    baseline: tuple[Output, ...], candidate: tuple[Output, ...]
) -> tuple[tuple[Output, Output], ...] | None:
    """By name where all names agree, else in order; None where there are not equally many."""
    if len(baseline) != len(candidate):
        return None
    by_name = {output.name: output for output in baseline}
    if all(output.name in by_name for output in candidate):
        return tuple((by_name[output.name], output) for output in candidate)
    return tuple(zip(baseline, candidate, strict=True))


def relate_outputs(
    baseline: Graph, candidate: Graph, mesh: Mesh, undecided: MutableMapping[str, str]
) -> tuple[OutputRelation, ...]:
    """Relations of all outputs; what does not fit is said in ``undecided``."""
    pairs = paired_outputs(baseline.outputs, candidate.outputs)
    if pairs is None:
        undecided["outputs"] = (
            f"the baseline gives {len(baseline.outputs)}, the candidate {len(candidate.outputs)}"
        )
        return ()
    types = (_types(baseline), _types(candidate))
    found: list[OutputRelation] = []
    misfits: dict[str, str] = {}
    for one, other in pairs:
        whole, local = types[0][one.name], types[1][other.name]
        choices = choices_of(whole.shape, local.shape, mesh, baseline.mesh.size)
        why = "" if choices else _misfit(whole.shape, local.shape, mesh, baseline.mesh.size)
        if KIND_OF[whole.dtype] != KIND_OF[local.dtype]:
            why = f"the baseline's {one.name} is {whole.dtype}, this is {local.dtype}"
        if why:
            misfits[other.name] = why
        else:
            found.append(OutputRelation(baseline=one.name, candidate=other.name, choices=choices))
    swapped = bool(misfits) and _fits_otherwise(baseline, mesh, types)
    ending = "; in another order all outputs would fit: are outputs swapped?" if swapped else ""
    undecided.update({f"output {name}": why + ending for name, why in misfits.items()})
    return tuple(found)


def _misfit(whole: Shape, local: Shape, mesh: Mesh, baseline_ranks: int) -> str:
    if baseline_ranks > 1:
        return f"{shapes(whole, local)}: both run on {mesh.size} ranks and shapes differ"
    return decide(whole, local, mesh, "").why


def _types(graph: Graph) -> dict[str, TensorType]:
    nodes: dict[NodeId, TensorType] = {node.id: node.type for node in graph.nodes}
    return {output.name: nodes[output.value] for output in graph.outputs}


def _fits_otherwise(
    baseline: Graph, mesh: Mesh, types: tuple[dict[str, TensorType], dict[str, TensorType]]
) -> bool:
    """Whether outputs could be paired so that all shapes fit: a matching, by augmenting paths."""
    wholes, locals_ = list(types[0].values()), list(types[1].values())
    fits = [
        [
            place
            for place, local in enumerate(locals_)
            if KIND_OF[whole.dtype] == KIND_OF[local.dtype]
            and choices_of(whole.shape, local.shape, mesh, baseline.mesh.size)
        ]
        for whole in wholes
    ]
    taken: dict[int, int] = {}
    return len(wholes) <= 64 and all(_augment(place, fits, taken, set()) for place in range(len(wholes)))


def _augment(place: int, fits: list[list[int]], taken: dict[int, int], tried: set[int]) -> bool:
    for option in fits[place]:
        if option in tried:
            continue
        tried.add(option)
        if option not in taken or _augment(taken[option], fits, taken, tried):
            taken[option] = place
            return True
    return False


def check_aliases(
    baseline: Graph, candidate: Graph, counterpart: Mapping[str, str], undecided: MutableMapping[str, str]
) -> tuple[str, ...]:
    """Say which outputs take over another input than their counterpart; a note where one side tells none.

    ``counterpart`` gives the baseline's name of a candidate's input.
    """
    pairs = paired_outputs(baseline.outputs, candidate.outputs) or ()
    told = [any(output.alias for output in graph.outputs) for graph in (baseline, candidate)]
    if not all(told):
        side = "candidate" if told[0] else "baseline"
        note = f"which inputs the outputs take over is not compared: the {side} does not say"
        return (note,) if any(told) else ()
    for one, other in pairs:
        expected = counterpart.get(other.alias, f"{other.alias} (unrelated)") if other.alias else None
        if one.alias != expected:
            why = (
                f"takes over the buffer of {other.alias or 'no input'}, "
                f"the baseline's {one.name} that of {one.alias or 'no input'}"
            )
            undecided.setdefault(f"output {other.name}", why)
    return ()
