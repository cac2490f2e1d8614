"""Training steps in parallel: the right ones are proved, with all their gradients; a forgotten sum is not."""

from pathlib import Path

import pytest
from scalify_models.blocks import LlamaBlock, Parts, alone, regression
from scalify_models.training import PIPELINE, Pair, pairs
from torch import Tensor

import scalify
from scalify.capture import captured
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.verdict import Proved

OPEN = "ring"
"""Partial softmaxes that are joined in another order on every rank."""
RIGHT = [*(pair for pair in pairs(2) if OPEN not in pair.name), PIPELINE]


def graphs(pair: Pair) -> tuple[Graph, Graph]:
    baseline = captured(pair.baseline, name="baseline", backward=pair.backward)
    return baseline, captured(pair.candidate, name="candidate", mesh=pair.mesh, backward=pair.backward)


@pytest.mark.parametrize("pair", RIGHT, ids=[pair.name for pair in RIGHT])
def test_a_parallel_training_step_is_proved(pair: Pair, tmp_path: Path) -> None:
    relations = tmp_path / "relations.toml"
    relations.write_text(pair.relations)
    verdict = scalify.verify(*graphs(pair), relations=relations if pair.relations else None)

    assert isinstance(verdict, Proved)
    assert sum(output.candidate.startswith(("grad.", "output_")) for output in verdict.outputs) >= 2


class Forgetful(Parts):
    """Enters regions without summing the gradients of what ranks compute in parts."""

    def enter(self, x: Tensor) -> Tensor:
        return x


class Careless(Parts):
    """Norms see a part of the sequence each; the sum of their gradients is forgotten."""

    def held_by_all(self, weight: Tensor) -> Tensor:
        return weight


@pytest.mark.parametrize(
    ("parts", "cuts", "wrong"),
    [
        (Forgetful, False, {"grad.x", "grad.block.before.weight", "grad.block.between.weight"}),
        (Careless, True, {"grad.block.before.weight", "grad.block.between.weight"}),
    ],
)
def test_a_forgotten_sum_of_gradients_is_found(parts: type[Parts], cuts: bool, wrong: set[str]) -> None:
    def build(rank: int, groups: object) -> object:
        assert isinstance(groups, dict)
        return regression(LlamaBlock, parts(group=groups["tp"], cuts_sequence=cuts))

    candidate = captured(build, name="candidate", mesh=Mesh(axes=(("tp", 2),)), backward=True)
    baseline = captured(alone(LlamaBlock), name="baseline", backward=True)
    verdict = scalify.verify(baseline, candidate)

    assert not isinstance(verdict, Proved)
    unproved = {output.candidate for output in verdict.outputs if output.layout is None}
    assert wrong <= unproved
    assert "output_0" not in unproved
