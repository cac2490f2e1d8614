"""Pairs of training steps: on one device, and the same in parallel, to be captured with their gradients.

``BUILDS`` lists them by name, with the mesh that the candidate runs on, and whether capturing asks for
gradients (``backward``) or the build's own code computes them.
"""

from dataclasses import dataclass

from scalify_models.blocks import Build, GptBlock, LlamaBlock, alone, in_parts
from scalify_models.context import Gathering, Ring, context_alone, context_in_parts
from scalify_models.data_parallel import (
    Flat,
    FullySharded,
    microbatches,
    sharded_alone,
    sharded_in_parts,
    whole_batch,
)
from scalify_models.experts import experts_alone, experts_in_parts
from scalify_models.stages import stages_alone, stages_in_parts
from scalify_models.vocabulary import gpt_alone, gpt_in_parts

from scalify.ir.mesh import SINGLE, Mesh


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two build functions of what computes the same."""

    name: str
    baseline: Build
    candidate: Build
    mesh: Mesh
    backward: bool = True
    relations: str = ""
    """What is stated of inputs, in TOML, where shapes and names do not tell."""


def pairs(ranks: int) -> tuple[Pair, ...]:
    """All pairs on so many ranks, or with so many microbatches."""
    tensor, data, expert, context = (Mesh(axes=((axis, ranks),)) for axis in ("tp", "dp", "ep", "cp"))
    return (
        Pair(
            name=f"Llama block, tensor parallel, {ranks} ranks",
            baseline=alone(LlamaBlock),
            candidate=in_parts(LlamaBlock),
            mesh=tensor,
        ),
        Pair(
            name=f"Llama block, sequence parallel, {ranks} ranks",
            baseline=alone(LlamaBlock),
            candidate=in_parts(LlamaBlock, cuts_sequence=True),
            mesh=tensor,
        ),
        Pair(
            name=f"GPT block, tensor parallel, {ranks} ranks",
            baseline=alone(GptBlock),
            candidate=in_parts(GptBlock),
            mesh=tensor,
        ),
        Pair(
            name=f"GPT block, sequence parallel, {ranks} ranks",
            baseline=alone(GptBlock),
            candidate=in_parts(GptBlock, cuts_sequence=True),
            mesh=tensor,
        ),
        Pair(
            name=f"GPT, vocabulary parallel loss, {ranks} ranks",
            baseline=gpt_alone,
            candidate=gpt_in_parts,
            mesh=tensor,
        ),
        Pair(
            name=f"mixture of experts, expert parallel, {ranks} ranks",
            baseline=experts_alone(ranks),
            candidate=experts_in_parts,
            mesh=expert,
        ),
        Pair(
            name=f"gradients accumulated over {ranks} microbatches",
            baseline=whole_batch,
            candidate=microbatches(ranks),
            mesh=SINGLE,
            backward=False,
        ),
        Pair(
            name=f"fully sharded parameters, {ranks} ranks",
            baseline=sharded_alone(FullySharded),
            candidate=sharded_in_parts(FullySharded),
            mesh=data,
        ),
        Pair(
            name=f"fully sharded flat parameter, {ranks} ranks",
            baseline=sharded_alone(Flat),
            candidate=sharded_in_parts(Flat),
            mesh=data,
            relations='[inputs.flat]\nshard = { dim = 0, axes = ["dp"] }\n',
        ),
        Pair(
            name=f"attention over a ring of parts of the sequence, {ranks} ranks",
            baseline=context_alone(Ring),
            candidate=context_in_parts(Ring),
            mesh=context,
        ),
        Pair(
            name=f"attention of parts of the sequence to gathered keys, {ranks} ranks",
            baseline=context_alone(Gathering),
            candidate=context_in_parts(Gathering),
            mesh=context,
        ),
    )


PIPELINE = Pair(
    name="two Llama blocks in a pipeline, 2 ranks",
    baseline=stages_alone,
    candidate=stages_in_parts,
    mesh=Mesh(axes=(("pp", 2),)),
    backward=False,
)


BUILDS: tuple[Pair, ...] = (*pairs(2), *pairs(4), PIPELINE)
