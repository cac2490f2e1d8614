"""Where an input lies on the ranks: its layout, and the parts it is fused of.

In: shapes, the mesh, and how the baseline cuts the dimensions that differ. Out: index maps and words for
them, or why there are none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalify.ir.mesh import Mesh
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.decide import Decision, blocks_that_fit, decide, shapes
from scalify.relate.layouts import Layout, index_of, rank_by_rank, text_of


@dataclass(frozen=True, slots=True)
class Placed:
    """How an input lies on the ranks: index maps of its parts along an axis, and how people say it."""

    indices: tuple[IndexMap, ...]
    axis: int
    text: str
    notes: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """How the baseline cuts a dimension: ``sizes`` if in a tiling, ``stride`` if every k-th element."""

    sizes: tuple[int, ...] | None
    stride: int | None
    shown: str


def place(
    whole: Shape, local: Shape, mesh: Mesh, baseline_ranks: int, role: str, cuts: Mapping[int, Parts]
) -> Placed:
    """Where ``local`` lies in ``whole``, given how the baseline cuts its dimensions."""
    if baseline_ranks > 1:
        if whole != local:
            return _undecided(f"{shapes(whole, local)}: both run on {mesh.size} ranks and shapes differ")
        return Placed((rank_by_rank(whole, mesh.size),), 0, "the same on each rank")
    decision = decide(whole, local, mesh, role)
    if decision.layout is None:
        return _undecided(decision.why + _uneven(whole, local, mesh, cuts))
    if not decision.layout:
        notes = ("equal shapes are taken as the same values on every rank",) if mesh.size > 1 else ()
        return Placed((index_of((), local, whole, mesh, {}),), 0, "replicated", notes)
    return _sharded(whole, local, mesh, role, decision, cuts)


def _undecided(why: str) -> Placed:
    return Placed((), 0, "", why=why)


def _sharded(
    whole: Shape, local: Shape, mesh: Mesh, role: str, decision: Decision, cuts: Mapping[int, Parts]
) -> Placed:
    layout = decision.layout or ()
    text = text_of(layout)
    notes = ["ranks hold blocks in their own order", *([decision.rule] if decision.rule else [])]
    if any(split.copies > 1 for split in layout):
        notes.append("neighbouring ranks hold the same block")
    if len(cuts) > 1:
        return _undecided(f"{shapes(whole, local)}, and the baseline slices dimensions {sorted(cuts)}")
    for dim, parts in cuts.items():
        blocks = whole[dim] // local[dim]
        if parts.sizes is None:
            # A weight cut like this may lie in any way; an input's last token is no part of it.
            if role != "input" and (parts.stride is None or local[dim] % parts.stride):
                return _undecided(_not_a_tiling(whole, local, dim, parts))
            continue
        if role == "input":
            return _undecided(
                f"{text}, or part by part, as the baseline slices dimension {dim} in {list(parts.sizes)}"
            )
        if _whole_parts(parts.sizes, local[dim], blocks):
            notes.append(f"every rank holds whole parts of dimension {dim}, as the baseline slices it")
            continue
        if any(size % blocks for size in parts.sizes):
            return _undecided(_indivisible(whole, local, mesh, dim, parts.sizes))
        return _fused(whole, local, mesh, layout, dim, parts.sizes, notes)
    return Placed((index_of(layout, local, whole, mesh, {}),), 0, text, tuple(notes))


def _whole_parts(sizes: Sequence[int], held: int, blocks: int) -> bool:
    """Whether equal parts that cannot be cut so often are shared out: a stack of experts' weights, say."""
    return len(set(sizes)) == 1 and sizes[0] % blocks != 0 and held % sizes[0] == 0


def _not_a_tiling(whole: Shape, local: Shape, dim: int, parts: Parts) -> str:
    return (
        f"{shapes(whole, local)}, and the baseline's slices of dimension {dim} ({parts.shown}, ...) "
        "do not lie side by side"
    )


def _fused(
    whole: Shape, local: Shape, mesh: Mesh, layout: Layout, dim: int, sizes: Sequence[int], notes: list[str]
) -> Placed:
    """Every part is laid out by itself, and ranks hold their pieces of the parts in the parts' order."""
    blocks = whole[dim] // local[dim]
    indices: list[IndexMap] = []
    start = 0
    for size in sizes:
        piece = (*local[:dim], size // blocks, *local[dim + 1 :])
        indices.append(index_of(layout, piece, whole, mesh, {dim: start}))
        start += size
    shown = ", ".join(map(str, sizes))
    notes.append(
        f"the parts {shown} of dimension {dim}, as the baseline slices it, lie in this order on every rank"
    )
    others = "".join(f", {split}" for split in layout if split.dim != dim)
    how = next(split.how for split in layout if split.dim == dim)
    text = f"dimension {dim} fused of {len(sizes)} parts ({shown}), each {how}{others}"
    return Placed(tuple(indices), dim, text, tuple(notes))


def _indivisible(whole: Shape, local: Shape, mesh: Mesh, dim: int, sizes: Sequence[int]) -> str:
    blocks = whole[dim] // local[dim]
    said = f"{shapes(whole, local)}: parts {list(sizes)} of dimension {dim} are not all divisible by {blocks}"
    return said + _block_options(sizes, local[dim], mesh)


def _uneven(whole: Shape, local: Shape, mesh: Mesh, cuts: Mapping[int, Parts]) -> str:
    """What else a fused dimension may be, where no layout of the whole fits."""
    for dim, parts in cuts.items():
        if parts.sizes is not None:
            return _block_options(parts.sizes, local[dim], mesh)
    return ""


def _block_options(sizes: Sequence[int], local: int, mesh: Mesh) -> str:
    options = blocks_that_fit(sizes, local, mesh)
    if not options:
        return ""
    listed_options = "; or ".join(str(list(option)) for option in options[:4])
    return f"; its parts {list(sizes)} would fit in blocks {listed_options}: state which"
