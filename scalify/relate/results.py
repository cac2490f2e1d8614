"""Which outputs make up which, and in which layouts they may do so.

In: both graphs, and what is stated of outputs. Out: a relation per output, with every clean layout its shapes
allow: which of them holds is for the proof to say.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from scalify.errors import InvalidRelations
from scalify.ir.graph import Graph, NodeId, Output, TensorType
from scalify.ir.mesh import Mesh
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.decide import decide, shapes
from scalify.relate.impose import layout_of
from scalify.relate.layouts import index_of, layouts, rank_by_rank, text_of
from scalify.relate.model import OutputRelation
from scalify.relate.stated import StatedOutput, StatedSplit, unknown

Choices = tuple[tuple[str, IndexMap], ...]
OutputPair = tuple[Output, Output]
MANY_OUTPUTS = 64
GRADIENT = "grad."


@lru_cache(maxsize=4096)
def choices_of(whole: Shape, local: Shape, mesh: Mesh, baseline_ranks: int) -> Choices:
    """All clean layouts in which ``local`` on every rank makes up ``whole``."""
    if baseline_ranks > 1:
        same = whole == local and baseline_ranks == mesh.size
        return (("the same on each rank", rank_by_rank(whole, mesh.size)),) if same else ()
    return tuple(
        (text_of(layout), index_of(layout, local, whole, mesh, {})) for layout in layouts(whole, local, mesh)
    )


def pair_outputs(
    baseline: Graph, candidate: Graph, stated: Sequence[StatedOutput], undecided: MutableMapping[str, str]
) -> tuple[OutputPair, ...]:
    """Outputs (baseline, candidate): as stated, else by name where all names agree, else in order."""
    ones = {output.name: output for output in baseline.outputs}
    others = {output.name: output for output in candidate.outputs}
    found: list[OutputPair] = []
    for one in stated:
        if one.candidate not in others:
            raise unknown("output of the candidate", one.candidate, others)
        if one.baseline not in ones:
            raise unknown("output of the baseline that is left", one.baseline, ones)
        found.append((ones.pop(one.baseline), others.pop(one.candidate)))
    if len(ones) != len(others):
        count, other_count = len(baseline.outputs), len(candidate.outputs)
        undecided["outputs"] = f"the baseline gives {count}, the candidate {other_count}"
    elif ones.keys() == others.keys():
        found.extend((ones[name], output) for name, output in others.items())
    else:
        found.extend(zip(ones.values(), others.values(), strict=True))
    return tuple(found)


def relate_outputs(
    graphs: tuple[Graph, Graph],
    mesh: Mesh,
    pairs: Sequence[OutputPair],
    stated: Sequence[StatedOutput],
    undecided: MutableMapping[str, str],
    inputs: Mapping[str, str] = MappingProxyType({}),
) -> tuple[OutputRelation, ...]:
    """Relations of all pairs of outputs; what does not fit is said in ``undecided``.

    ``inputs`` says how each of the candidate's inputs lies: its gradient ``grad.INPUT`` lies alike.
    """
    ranks = graphs[0].mesh.size
    types = (_types(graphs[0]), _types(graphs[1]))
    layouts_stated = {one.candidate: one.splits for one in stated if one.splits is not None}
    found: list[OutputRelation] = []
    misfits: dict[str, str] = {}
    for one, other in pairs:
        whole, local = types[0][one.name], types[1][other.name]
        splits = layouts_stated.get(other.name)
        if KIND_OF[whole.dtype] != KIND_OF[local.dtype]:
            misfits[other.name] = f"the baseline's {one.name} is {whole.dtype}, this is {local.dtype}"
            continue
        if splits is None:
            choices = choices_of(whole.shape, local.shape, mesh, ranks)
            alike = inputs.get(other.name.removeprefix(GRADIENT)) if other.name.startswith(GRADIENT) else None
            choices = tuple(choice for choice in choices if choice[0] == alike) or choices
        else:
            choices = _stated_choice(splits, whole.shape, local.shape, mesh, ranks, f"output {other.name!r}")
        if choices:
            found.append(OutputRelation(baseline=one.name, candidate=other.name, choices=choices))
        else:
            misfits[other.name] = _misfit(whole.shape, local.shape, mesh, ranks)
    swapped = bool(misfits) and _fits_otherwise(ranks, mesh, types)
    ending = "; in another order all outputs would fit: are outputs swapped?" if swapped else ""
    undecided.update({f"output {name}": why + ending for name, why in misfits.items()})
    return tuple(found)


def _stated_choice(
    splits: Sequence[StatedSplit], whole: Shape, local: Shape, mesh: Mesh, baseline_ranks: int, where: str
) -> Choices:
    if baseline_ranks > 1:
        raise InvalidRelations(
            f"{where}: the baseline runs on {baseline_ranks} ranks itself",
            hint="say only which outputs are the same: baseline = ...",
        )
    layout, made = layout_of(splits, whole, mesh, where)
    if made != local:
        raise InvalidRelations(
            f"{where}: what is stated of {list(whole)} makes {list(made)} on every rank, "
            f"and the candidate gives {list(local)}",
            hint="state a layout whose shapes fit",
        )
    return ((text_of(layout), index_of(layout, local, whole, mesh, {})),)


def _misfit(whole: Shape, local: Shape, mesh: Mesh, baseline_ranks: int) -> str:
    if baseline_ranks > 1:
        return f"{shapes(whole, local)}: both run on {mesh.size} ranks and shapes differ"
    if mesh.size == 1:
        return f"the baseline gives {list(whole)}, the candidate {list(local)}: shapes should be equal"
    return decide(whole, local, mesh, "").why


def _types(graph: Graph) -> dict[str, TensorType]:
    nodes: dict[NodeId, TensorType] = {node.id: node.type for node in graph.nodes}
    return {output.name: nodes[output.value] for output in graph.outputs}


def _fits_otherwise(
    ranks: int, mesh: Mesh, types: tuple[dict[str, TensorType], dict[str, TensorType]]
) -> bool:
    """Whether outputs could be paired so that all shapes fit: a matching, by augmenting paths."""
    wholes, locals_ = list(types[0].values()), list(types[1].values())
    if len(wholes) > MANY_OUTPUTS:
        return False
    fits = [
        [
            place
            for place, local in enumerate(locals_)
            if KIND_OF[whole.dtype] == KIND_OF[local.dtype]
            and choices_of(whole.shape, local.shape, mesh, ranks)
        ]
        for whole in wholes
    ]
    taken: dict[int, int] = {}
    return all(_augment(place, fits, taken, set()) for place in range(len(wholes)))


def _augment(place: int, fits: list[list[int]], taken: dict[int, int], tried: set[int]) -> bool:
    for option in fits[place]:
        if option in tried:
            continue
        tried.add(option)
        if option not in taken or _augment(taken[option], fits, taken, tried):
            taken[option] = place
            return True
    return False
