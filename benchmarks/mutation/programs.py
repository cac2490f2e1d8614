"""The parallel programs that mistakes are planted in, each with the one on one device that it stands for.

Decoders from ids to logits, and training steps with their gradients: blocks in parts of the width and of the
sequence, experts, parts of the batch, of parameters and of the keys, and stages.
"""

from dataclasses import dataclass
from tempfile import NamedTemporaryFile

from scalify_models import decoders
from scalify_models.blocks import Build
from scalify_models.training import BUILDS
from scalify_models.training import Pair as Step

from scalify.capture import captured
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.refute.budget import Search
from scalify.verification import Verification, verification

MOST_RANKS = 2
"""Training steps are taken on so many; what more ranks change is the business of other benchmarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Two build functions, captured for a mesh. ``relations`` is what is stated of inputs, in TOML."""

    name: str
    baseline: Build
    candidate: Build
    mesh: Mesh
    backward: bool = False
    relations: str = ""

    def graphs(self) -> tuple[Graph, Graph]:
        """Both sides."""
        return (
            captured(self.baseline, name="baseline", backward=self.backward),
            captured(self.candidate, name="candidate", mesh=self.mesh, backward=self.backward),
        )

    def verify(self, baseline: Graph, candidate: Graph, search: Search | None) -> Verification:
        """What becomes of a candidate, right or wrong."""
        with NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as stated:
            stated.write(self.relations)
            stated.flush()
            path = stated.name if self.relations else None
            return verification(baseline, candidate, search=search, relations=path)


def _steps() -> tuple[Program, ...]:
    return tuple(
        Program(
            name=f"{step.name.removesuffix(f', {MOST_RANKS} ranks')}, trained",
            baseline=step.baseline,
            candidate=step.candidate,
            mesh=step.mesh,
            backward=step.backward,
            relations=step.relations,
        )
        for step in BUILDS
        if _is_small(step)
    )


def _is_small(step: Step) -> bool:
    return step.mesh.size <= MOST_RANKS and "4 " not in step.name


PROGRAMS: tuple[Program, ...] = (
    Program(
        name="Llama forward",
        baseline=decoders.llama_alone,
        candidate=decoders.llama_in_parts,
        mesh=Mesh(axes=(("dp", 2), ("tp", 2))),
    ),
    Program(
        name="GPT forward",
        baseline=decoders.gpt_alone,
        candidate=decoders.gpt_in_parts,
        mesh=Mesh(axes=(("tp", 2),)),
    ),
    *_steps(),
)
