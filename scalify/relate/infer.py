"""Relate two graphs: an ordered, finite inference from names, shapes and how the baseline cuts its inputs.

In: both graphs, and what the user states, which goes before anything inferred. Out: Relations. Nothing here
tries a proof, and nothing looks at the candidate's operations: of the candidate only inputs, outputs and the
mesh are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scalify.ir.graph import Graph, Node
from scalify.ir.mesh import Mesh
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.cuts import Cuts, stride_of, tiling
from scalify.relate.decide import Decision, blocks_that_fit, decide, described, shapes
from scalify.relate.layouts import Layout, index_of, rank_by_rank, text_of
from scalify.relate.model import InputRelation, Part, Relations
from scalify.relate.pairing import distinguishes_roles, listed, name_of, pair, role_of
from scalify.relate.results import check_aliases, relate_outputs


@dataclass(frozen=True, slots=True)
class Placed:
    """How an input lies on the ranks: index maps of its parts along an axis, and how people say it."""

    indices: tuple[IndexMap, ...]
    axis: int
    text: str
    notes: tuple[str, ...] = ()
    why: str = ""


@dataclass
class Inference:
    """What is known so far of one pair of graphs. ``noted`` are notes with the inputs they hold for."""

    baseline: Graph
    candidate: Graph
    mesh: Mesh
    roles: bool
    noted: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    undecided: dict[str, str] = field(default_factory=dict[str, str])
    _placed: dict[object, Placed] = field(default_factory=dict[object, Placed])

    @cached_property
    def cuts(self) -> Cuts:
        """How the baseline slices its values."""
        return Cuts(self.baseline)

    def relation(self, whole: Node, local: Node) -> InputRelation | None:
        """The relation of one pair of inputs; None, with a reason in ``undecided``, where there is none."""
        name = name_of(local)
        if KIND_OF[whole.type.dtype] != KIND_OF[local.type.dtype]:
            self.undecided[f"input {name}"] = (
                f"the baseline's {name_of(whole)} is {whole.type.dtype}, this is {local.type.dtype}"
            )
            return None
        placed = self.placed(whole, local)
        if placed.why:
            self.undecided[f"input {name}"] = placed.why
            return None
        if whole.type.dtype != local.type.dtype:
            self.note(
                f"taken as the same values: {whole.type.dtype} in the baseline, {local.type.dtype} here", name
            )
        for note in placed.notes:
            self.note(note, name)
        return InputRelation(
            candidate=local.id,
            name=name,
            of=(name_of(whole),),
            parts=tuple(Part(baseline=whole.id, index=index) for index in placed.indices),
            axis=placed.axis,
            text=placed.text,
        )

    def note(self, text: str, name: str) -> None:
        """An assumption, and one of the inputs for which it is made."""
        self.noted.setdefault(text, []).append(name)

    def placed(self, whole: Node, local: Node) -> Placed:
        """Where the input lies; equal questions are answered once."""
        one, other = whole.type.shape, local.type.shape
        role = role_of(local) if self.roles else ""
        cuts = () if one == other or len(one) != len(other) else self._cuts(whole, local)
        key = (one, other, role, cuts)
        if key not in self._placed:
            self._placed[key] = place(one, other, self.mesh, self.baseline.mesh.size, role, dict(cuts))
        return self._placed[key]

    def _cuts(self, whole: Node, local: Node) -> tuple[tuple[int, "Parts"], ...]:
        """How the baseline cuts each dimension in which the shapes differ."""
        found: list[tuple[int, Parts]] = []
        for dim, (full, part) in enumerate(zip(whole.type.shape, local.type.shape, strict=True)):
            cuts = self.cuts.of(whole.id, dim) if full != part else ()
            if cuts:
                sizes = tiling(cuts, full)
                shown = ", ".join(f"{cut.start}:{cut.start + cut.size * cut.step}" for cut in cuts[:4])
                found.append((dim, Parts(sizes, stride_of(cuts, full), shown)))
        return tuple(found)

    def notes(self) -> tuple[str, ...]:
        """All notes, each with the inputs it holds for."""
        return tuple(f"{text} ({listed(names)})" for text, names in self.noted.items())


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
            if parts.stride is None or local[dim] % parts.stride:
                return _undecided(_not_a_tiling(whole, local, dim, parts))
            continue
        if role == "input":
            return _undecided(
                f"{text}, or part by part, as the baseline slices dimension {dim} in {list(parts.sizes)}"
            )
        if any(size % blocks for size in parts.sizes):
            return _undecided(_indivisible(whole, local, mesh, dim, parts.sizes))
        return _fused(whole, local, mesh, layout, dim, parts.sizes, notes)
    return Placed((index_of(layout, local, whole, mesh, {}),), 0, text, tuple(notes))


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


def relate(baseline: Graph, candidate: Graph) -> Relations:
    """How the baseline's inputs lie on the candidate's ranks, and which outputs make up which."""
    mesh = candidate.mesh
    ones, others = baseline.inputs(), candidate.inputs()
    state = Inference(baseline, candidate, mesh, distinguishes_roles(others))
    if baseline.mesh.size not in (1, mesh.size):
        state.undecided["mesh"] = (
            f"the baseline runs on {baseline.mesh.size} ranks ({described(baseline.mesh)}), "
            f"the candidate on {mesh.size} ({described(mesh)})"
        )
        return Relations(inputs=(), outputs=(), undecided=state.undecided)
    pairing = pair(ones, others)
    found = [state.relation(one, other) for one, other in pairing.pairs]
    relations = _in_order(others, [relation for relation in found if relation is not None])
    left = listed([name_of(node) for node in pairing.baseline]) or "none"
    for node in pairing.candidate:
        state.undecided[f"input {name_of(node)}"] = f"no counterpart; inputs left in the baseline: {left}"
    outputs = relate_outputs(baseline, candidate, mesh, state.undecided)
    counterpart = {name_of(other): name_of(one) for one, other in pairing.pairs}
    alias_notes = check_aliases(baseline, candidate, counterpart, state.undecided)
    return Relations(
        inputs=relations,
        outputs=outputs,
        undecided=state.undecided,
        unused=tuple(name_of(node) for node in pairing.baseline),
        notes=(
            *_rank_notes(baseline, mesh),
            *pairing.notes,
            *state.notes(),
            *alias_notes,
        ),
    )


def _rank_notes(baseline: Graph, mesh: Mesh) -> tuple[str, ...]:
    if baseline.mesh.size > 1:
        return ("rank by rank, both programs hold the same inputs",)
    if mesh.size > 1:
        return (f"ranks are numbered with the last axis fastest: {described(mesh)}",)
    return ()


def _in_order(nodes: Sequence[Node], relations: Sequence[InputRelation]) -> tuple[InputRelation, ...]:
    by_id = {relation.candidate: relation for relation in relations}
    return tuple(by_id[node.id] for node in nodes if node.id in by_id)
