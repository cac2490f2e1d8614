"""Relations of pairs of inputs, and the assumptions they rest on, while they are found."""

from dataclasses import dataclass, field
from functools import cached_property

from scalify.ir.graph import Graph, Node
from scalify.ir.mesh import Mesh
from scalify.ir.ops.dtypes import KIND_OF
from scalify.relate.cuts import Cuts, shown, stride_of, tiling
from scalify.relate.model import InputRelation, Part
from scalify.relate.pairing import listed, name_of, role_of
from scalify.relate.placing import Parts, Placed, place


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
        self.note_dtypes(whole, local)
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

    def note_dtypes(self, whole: Node, local: Node) -> None:
        """Other precision is an assumption too."""
        if whole.type.dtype != local.type.dtype:
            said = f"{whole.type.dtype} in the baseline and {local.type.dtype} are taken as the same values"
            self.note(said, name_of(local))

    def placed(self, whole: Node, local: Node) -> Placed:
        """Where the input lies; equal questions are answered once."""
        one, other = whole.type.shape, local.type.shape
        role = role_of(local) if self.roles else ""
        cuts = () if one == other or len(one) != len(other) else self._cuts(whole, local)
        key = (one, other, role, cuts)
        if key not in self._placed:
            self._placed[key] = place(one, other, self.mesh, self.baseline.mesh.size, role, dict(cuts))
        return self._placed[key]

    def _cuts(self, whole: Node, local: Node) -> tuple[tuple[int, Parts], ...]:
        """How the baseline cuts each dimension in which the shapes differ."""
        found: list[tuple[int, Parts]] = []
        for dim, (full, part) in enumerate(zip(whole.type.shape, local.type.shape, strict=True)):
            cuts = self.cuts.of(whole.id, dim) if full != part else ()
            if cuts:
                sizes = tiling(cuts, full)
                stride = None if sizes else stride_of(cuts, full)
                found.append((dim, Parts(sizes, stride, "" if sizes else shown(cuts))))
        return tuple(found)

    def notes(self) -> tuple[str, ...]:
        """All notes, each with the inputs it holds for."""
        return tuple(f"{text} ({listed(names)})" for text, names in self.noted.items())
