"""Make relations of what the user states, and refuse what does not fit the graphs.

In: stated inputs and both graphs. Out: their relations, which every later step leaves alone. Shapes and kinds
of elements must fit, and every element of an input of the baseline that is spoken of is held exactly once, or
the whole of it by each of several inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from scalify.errors import InvalidRelations
from scalify.ir.graph import Graph, Node
from scalify.ir.mesh import Mesh
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.decide import described
from scalify.relate.inference import Inference
from scalify.relate.layouts import Layout, Split, index_of, text_of
from scalify.relate.model import InputRelation, Part
from scalify.relate.pairing import name_of
from scalify.relate.shares import of_rank
from scalify.relate.stated import Stated, StatedInput, StatedPart, StatedSplit, Window, unknown

ANONYMOUS_AXES = frozenset({"rank"})
MANY_WINDOWS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Imposed:
    """Stated relations, and the names of the inputs on either side that they have settled.

    ``free`` are the candidate's inputs that hold nothing of the baseline.
    """

    relations: tuple[InputRelation, ...]
    baseline: frozenset[str]
    candidate: frozenset[str]
    free: tuple[Node, ...] = ()


def mesh_of(candidate: Graph, stated: Stated) -> Mesh:
    """The candidate's mesh, with the names that are stated for axes that have none."""
    mesh = candidate.mesh
    if stated.mesh is None or stated.mesh == mesh:
        return mesh
    if stated.mesh.size != mesh.size:
        raise InvalidRelations(
            f"the stated mesh ({described(stated.mesh)}) has not {mesh.size} ranks, as the candidate has",
            hint="the sizes of the axes multiply to the number of ranks",
        )
    if not {name for name, size in mesh.axes if size > 1} <= ANONYMOUS_AXES:
        raise InvalidRelations(
            f"the candidate's mesh has names of its own: {described(mesh)}", hint="leave [mesh] out"
        )
    return stated.mesh


def impose(stated: Sequence[StatedInput], state: Inference) -> Imposed:
    """Relations of all stated inputs."""
    if not stated:
        return Imposed(relations=(), baseline=frozenset(), candidate=frozenset())
    ones = {name_of(node): node for node in state.baseline.inputs()}
    others = {name_of(node): node for node in state.candidate.inputs()}
    for one in stated:
        if one.candidate not in others:
            raise unknown("input of the candidate", one.candidate, others)
    relations = [_relation(one, ones, others[one.candidate], state) for one in stated if one.parts]
    if not state.candidate.unrolled:
        # Ranks that stand side by side hold copies of their own.
        _check_coverage(stated, ones, state)
    settled = frozenset(one.candidate for one in stated)
    # One that also stands for itself is still to be found by its name: a weight that is tied to it is stated.
    twins = {of_rank(name)[0] if state.candidate.unrolled else name for name in others if name not in settled}
    return Imposed(
        relations=tuple(relation for relation in relations if relation is not None),
        baseline=frozenset(
            part.baseline
            for one in stated
            for part in one.parts
            if not (_is_whole(one) and part.baseline in twins)
        ),
        candidate=settled,
        free=tuple(others[one.candidate] for one in stated if not one.parts),
    )


def _is_whole(stated: StatedInput) -> bool:
    return len(stated.parts) == 1 and stated.parts[0].window is None


def _relation(
    stated: StatedInput, ones: Mapping[str, Node], local: Node, state: Inference
) -> InputRelation | None:
    where = f"input {stated.candidate!r}"
    wholes: list[Node] = []
    for part in stated.parts:
        if part.baseline not in ones:
            raise unknown(f"{where}: input of the baseline", part.baseline, ones)
        wholes.append(ones[part.baseline])
    for whole in wholes:
        _check_kind(where, whole, local)
    if stated.parts[0].splits is None:
        inferred = state.relation(wholes[0], local)
        return None if inferred is None else replace(inferred, stated=True)
    if state.baseline.mesh.size > 1:
        raise InvalidRelations(
            f"{where}: the baseline runs on {state.baseline.mesh.size} ranks itself",
            hint="say only which inputs are the same: baseline = ...",
        )
    for whole in wholes:
        state.note_dtypes(whole, local)
    return _placed(stated, wholes, local, state.mesh)


def _check_kind(where: str, whole: Node, local: Node) -> None:
    if KIND_OF[whole.type.dtype] != KIND_OF[local.type.dtype]:
        raise InvalidRelations(
            f"{where} is {local.type.dtype}, the baseline's {name_of(whole)} is {whole.type.dtype}",
            hint="relate inputs of one kind",
        )


def _placed(stated: StatedInput, wholes: Sequence[Node], local: Node, mesh: Mesh) -> InputRelation:
    where = f"input {stated.candidate!r}"
    pieces = [
        _piece(part, whole.type.shape, mesh, where) for part, whole in zip(stated.parts, wholes, strict=True)
    ]
    made = _joined([piece.shape for piece in pieces], stated.axis, where)
    if made != local.type.shape:
        raise InvalidRelations(
            f"{where}: what is stated of {', '.join(str(list(whole.type.shape)) for whole in wholes)} makes "
            f"{list(made)} on every rank, and the candidate holds {list(local.type.shape)}",
            hint="state a layout whose shapes fit",
        )
    texts = [piece.text for piece in pieces]
    if len(pieces) > 1:
        named = (f"{part.baseline} ({text})" for part, text in zip(stated.parts, texts, strict=True))
        texts = [f"along dimension {stated.axis}: {', '.join(named)}"]
    return InputRelation(
        candidate=local.id,
        name=stated.candidate,
        of=tuple(part.baseline for part in stated.parts),
        parts=tuple(
            Part(baseline=whole.id, index=piece.index) for whole, piece in zip(wholes, pieces, strict=True)
        ),
        axis=stated.axis,
        text=texts[0],
        stated=True,
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    shape: Shape
    index: IndexMap
    text: str


def _piece(part: StatedPart, whole: Shape, mesh: Mesh, where: str) -> _Piece:
    window = whole if part.window is None else _window(part.window, whole, where)
    start = {} if part.window is None else {part.window.dim: part.window.start}
    layout, local = layout_of(part.splits or (), window, mesh, where)
    text = text_of(layout)
    if part.window is not None:
        first, last = part.window.start, part.window.start + part.window.size
        text = f"{first}:{last} of dimension {part.window.dim}, {text}"
    return _Piece(local, index_of(layout, local, whole, mesh, start), text)


def _window(window: Window, whole: Shape, where: str) -> Shape:
    if window.dim >= len(whole) or window.start + window.size > whole[window.dim]:
        raise InvalidRelations(
            f"{where}: window {window.start}:{window.start + window.size} of dimension {window.dim} "
            f"is not within {list(whole)}",
            hint="a window lies inside the baseline's input",
        )
    return (*whole[: window.dim], window.size, *whole[window.dim + 1 :])


def layout_of(splits: Sequence[StatedSplit], whole: Shape, mesh: Mesh, where: str) -> tuple[Layout, Shape]:
    """The layout that is stated of a tensor, and the shape it gives every rank."""
    local = list(whole)
    layout: list[Split] = []
    for stated in splits:
        split = _split(stated, mesh, where)
        if stated.dim >= len(whole) or whole[stated.dim] % split.blocks:
            raise InvalidRelations(
                f"{where}: dimension {stated.dim} of {list(whole)} is not cut in {split.blocks} equal blocks",
                hint="state dimensions and axes that fit",
            )
        local[stated.dim] = whole[stated.dim] // split.blocks
        layout.append(split)
    used = [axis.name for split in layout for axis in split.axes]
    if len(set(used)) < len(used) or len({split.dim for split in layout}) < len(layout):
        raise InvalidRelations(f"{where}: an axis or a dimension is cut twice", hint="name each once")
    return tuple(sorted(layout, key=lambda split: split.dim)), tuple(local)


def _split(stated: StatedSplit, mesh: Mesh, where: str) -> Split:
    axes = {axis.name: axis for axis in mesh.placed()}
    for name in stated.axes:
        if name not in axes:
            raise unknown(f"{where}: mesh axis", name, axes)
    ordered = tuple(axis for axis in mesh.placed() if axis.name in stated.axes)
    if tuple(axis.name for axis in ordered) != stated.axes:
        raise InvalidRelations(
            f"{where}: axes {', '.join(stated.axes)} do not stand in the mesh's order",
            hint=f"blocks lie in the order of the ranks: {', '.join(axis.name for axis in ordered)}",
        )
    ranks = prod(axis.size for axis in ordered)
    split = Split(stated.dim, ranks if stated.blocks is None else stated.blocks, ordered)
    if split.digits() is None:
        raise InvalidRelations(
            f"{where}: {split.blocks} blocks do not lie evenly over {ranks} ranks ({', '.join(stated.axes)})",
            hint="the number of blocks divides that of the ranks",
        )
    return split


def _joined(pieces: Sequence[Shape], axis: int, where: str) -> Shape:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    others = {(*piece[:axis], *piece[axis + 1 :]) for piece in pieces}
    if axis >= len(first) or len(others) > 1 or len({len(piece) for piece in pieces}) > 1:
        raise InvalidRelations(
            f"{where}: {', '.join(str(list(piece)) for piece in pieces)} do not join along dimension {axis}",
            hint="parts differ in that dimension only",
        )
    return (*first[:axis], sum(piece[axis] for piece in pieces), *first[axis + 1 :])


Box = tuple[tuple[int, int], ...]


def _check_coverage(stated: Sequence[StatedInput], ones: Mapping[str, Node], state: Inference) -> None:
    """Every element of the inputs spoken of is held once: windows neither overlap nor leave a gap.

    Or each of several inputs holds the whole, as tied weights do.
    """
    holders: dict[str, list[StatedInput]] = {}
    boxes: dict[str, list[Box]] = {}
    for one in stated:
        for part in one.parts:
            boxes.setdefault(part.baseline, []).append(_box(part.window, ones[part.baseline].type.shape))
            holders.setdefault(part.baseline, []).append(one)
    for name, windows in boxes.items():
        if len(windows) > 1 and all(map(_is_whole, holders[name])):
            for one in holders[name]:
                state.note(f"each of several inputs holds the whole of the baseline's {name}", one.candidate)
            continue
        shape = ones[name].type.shape
        if len(windows) > MANY_WINDOWS:
            raise InvalidRelations(f"{name!r} is stated {len(windows)} times", hint=f"at most {MANY_WINDOWS}")
        if any(_overlap(a, b) for place, a in enumerate(windows) for b in windows[:place]):
            raise InvalidRelations(
                f"elements of the baseline's {name!r} are stated twice", hint="every element is held once"
            )
        covered = sum(prod(last - first for first, last in box) for box in windows)
        if covered < prod(shape):
            raise InvalidRelations(
                f"only {covered} of {prod(shape)} elements of the baseline's {name!r} are stated",
                hint="say of which input of the candidate the rest is a part",
            )


def _box(window: Window | None, shape: Shape) -> Box:
    full = [(0, size) for size in shape]
    if window is not None:
        full[window.dim] = (window.start, window.start + window.size)
    return tuple(full)


def _overlap(one: Box, other: Box) -> bool:
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=True))
