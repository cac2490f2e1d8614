"""Relate a baseline to a candidate whose ranks stand side by side: what each rank takes and gives by itself.

In: both graphs, and what is stated. Out: Relations in which ``w@rank2`` is a window of the baseline's ``w``.
Only three things are inferred of an input that ranks hold under one name: all hold the whole; or their sizes
along one dimension make up the whole, in rank order; or, where the baseline cuts that dimension in parts,
each of these lies so. Anything else is for the user to state.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType

from scalify.errors import InvalidRelations
from scalify.ir.graph import Graph, Node
from scalify.ir.mesh import SINGLE
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.maps import Shape
from scalify.relate.aliases import check_aliases
from scalify.relate.cuts import shown, stride_of, tiling
from scalify.relate.free import free_inputs
from scalify.relate.impose import impose
from scalify.relate.inference import Inference
from scalify.relate.model import InputRelation, Part, Relations
from scalify.relate.pairing import distinguishes_roles, name_of, pair, role_of
from scalify.relate.shares import Shares, of_rank, ranks_text, shares, sizes_text, window_index
from scalify.relate.stated import Stated
from scalify.relate.unrolled_outputs import pair_outputs, relate_outputs


def relate_unrolled(baseline: Graph, candidate: Graph, stated: Stated) -> Relations:
    """How the baseline's inputs lie on ranks that stand side by side, and what their outputs make up."""
    if stated.mesh is not None:
        raise InvalidRelations(
            "the candidate's ranks stand side by side, on no mesh",
            hint="leave [mesh] out and name NAME@rank0",
        )
    state = Inference(baseline, candidate, SINGLE, distinguishes_roles(candidate.inputs()))
    imposed = impose(stated.inputs, state)
    own = [node for node in baseline.inputs() if name_of(node) not in imposed.baseline]
    held = _by_name(node for node in candidate.inputs() if name_of(node) not in imposed.candidate)
    _check_whole_names(held, imposed.candidate)
    pairing = pair(own, [_unranked(nodes[0]) for nodes in held.values()])
    relations = [*imposed.relations]
    for whole, one in pairing.pairs:
        relations.extend(_inputs(whole, held[name_of(one)], state))
    free = free_inputs(pairing, held, imposed.free, state)
    by_id = {relation.candidate: relation for relation in relations}
    pairs = pair_outputs(baseline, candidate, stated.outputs, state.undecided)
    outputs = relate_outputs(baseline, candidate, pairs, stated.outputs, state.undecided)
    counterpart = {relation.name: relation.of[0] for relation in relations if len(set(relation.of)) == 1}
    alias_notes = check_aliases(
        [(one, other) for one, others in pairs for other in others], counterpart, state.undecided
    )
    return Relations(
        inputs=tuple(by_id[node.id] for node in candidate.inputs() if node.id in by_id),
        outputs=outputs,
        undecided=state.undecided,
        unused=tuple(name_of(node) for node in pairing.baseline),
        notes=(
            f"the programs of the {candidate.unrolled} ranks differ: they are taken side by side",
            *pairing.notes,
            *state.notes(),
            *alias_notes,
        ),
        free=free,
    )


def _by_name(nodes: Iterable[Node]) -> Mapping[str, list[Node]]:
    """Inputs by what each rank's own program calls them, in the order of the ranks."""
    found: dict[str, list[tuple[int, Node]]] = {}
    for node in nodes:
        name, rank = of_rank(name_of(node))
        found.setdefault(name, []).append((rank, node))
    return {
        name: [node for _, node in sorted(placed, key=lambda one: one[0])] for name, placed in found.items()
    }


def _check_whole_names(held: Mapping[str, Sequence[Node]], stated: frozenset[str]) -> None:
    """An input is stated for all ranks that hold it, or for none."""
    for name in sorted(stated):
        if of_rank(name)[0] in held:
            raise InvalidRelations(
                f"input {of_rank(name)[0]!r} is stated for some ranks only",
                hint=f"state all that hold it, as {name!r}",
            )


def _unranked(node: Node) -> Node:
    name, _ = of_rank(name_of(node))
    return replace(node, attrs=MappingProxyType({**node.attrs, "name": name}))


def _inputs(whole: Node, held: Sequence[Node], state: Inference) -> list[InputRelation]:
    """The relations of one input on all ranks that hold it; none, with a reason, if they are not decided."""
    name, _ = of_rank(name_of(held[0]))
    found = _decided(whole, held, state)
    if isinstance(found, str):
        state.undecided[f"input {name}"] = found
        return []
    dtypes = {node.type.dtype for node in held} - {whole.type.dtype}
    for dtype in sorted(dtypes):
        state.note(f"{whole.type.dtype} in the baseline and {dtype} are taken as the same values", name)
    if found.dim is None:
        state.note("equal shapes are taken as the same values on every rank", name)
    else:
        state.note("ranks hold windows in their own order", name)
    return [
        InputRelation(
            candidate=node.id,
            name=name_of(node),
            of=(name_of(whole),),
            parts=tuple(
                Part(baseline=whole.id, index=window_index(found.dim or 0, start, shape, whole.type.shape))
                for start, shape in pieces
            ),
            axis=found.dim or 0,
            text=found.text,
        )
        for node, pieces in zip(held, found.pieces, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Of every rank: the pieces of the baseline's tensor that it holds, as (start along ``dim``, shape)."""

    dim: int | None
    pieces: tuple[tuple[tuple[int, Shape], ...], ...]
    text: str


def _decided(whole: Node, held: Sequence[Node], state: Inference) -> _Found | str:
    if any(KIND_OF[node.type.dtype] != KIND_OF[whole.type.dtype] for node in held):
        return f"the baseline's {name_of(whole)} is {whole.type.dtype}, this is {held[0].type.dtype}"
    shapes = [node.type.shape for node in held]
    made = shares(whole.type.shape, shapes)
    if isinstance(made, str):
        return made
    if made.dim is None:
        return _Found(dim=None, pieces=tuple(((0, shape),) for shape in shapes), text="replicated")
    ranks = [of_rank(name_of(node))[1] for node in held]
    text = f"dimension {made.dim} in parts {sizes_text(made.sizes)} over ranks {ranks_text(ranks)}"
    cuts = state.cuts.of(whole.id, made.dim)
    parts = tiling(cuts, whole.type.shape[made.dim])
    is_input = state.roles and role_of(held[0]) == "input"
    could_be_cut = parts and not any(size * part % sum(parts) for part in parts for size in made.sizes)
    if parts is None or (is_input and not could_be_cut):
        if cuts and not is_input and not _keeps_stride(stride_of(cuts, whole.type.shape[made.dim]), made):
            return f"{text}, and the baseline's slices of it ({shown(cuts)}, ...) do not lie side by side"
        pieces = tuple(((start, shape),) for start, shape in zip(made.starts(), shapes, strict=True))
        return _Found(dim=made.dim, pieces=pieces, text=text)
    if is_input:
        return f"{text}, or part by part, as the baseline slices it in {list(parts)}"
    return _fused(made, parts, shapes, text)


def _keeps_stride(stride: int | None, made: Shares) -> bool:
    return stride is not None and all(size % stride == 0 for size in made.sizes)


def _fused(made: Shares, parts: Sequence[int], shapes: Sequence[Shape], text: str) -> _Found | str:
    """Each part lies on the ranks in the proportions of the whole, and ranks hold their pieces in order."""
    dim, total = made.dim or 0, sum(parts)
    pieces: list[list[tuple[int, Shape]]] = [[] for _ in shapes]
    first = 0
    for part in parts:
        if any(size * part % total for size in made.sizes):
            return f"{text}, in which parts {list(parts)}, as the baseline slices it, cannot lie: state which"
        sizes = [size * part // total for size in made.sizes]
        for own, shape, size, end in zip(pieces, shapes, sizes, accumulate(sizes), strict=True):
            own.append((first + end - size, (*shape[:dim], size, *shape[dim + 1 :])))
        first += part
    said = f"{text}, fused of {len(parts)} parts ({', '.join(map(str, parts))}), each so"
    return _Found(dim=dim, pieces=tuple(map(tuple, pieces)), text=said)
