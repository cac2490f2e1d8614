"""Parts of a model in JAX against their shard_map: from the jaxpr and from StableHLO, right and wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

import jax
from scalify_models import jax_parts
from scalify_models.jax_parts import Built

import scalify
from scalify.capture.jax_functions import of_jax
from scalify.ir.graph import Graph
from scalify.load.stablehlo import read
from scalify.verdict import Proved, Refuted

Build = Callable[[], Built]


def from_jaxpr(build: Build) -> Graph:
    return of_jax(build(), build.__name__)


def from_text(build: Build) -> Graph:
    function, args = build()
    return read(jax.jit(function).lower(*args).as_text(debug_info=True).encode())


@pytest.mark.parametrize("way", [from_jaxpr, from_text])
@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        (jax_parts.mlp, jax_parts.mlp_tp),
        (jax_parts.attention, jax_parts.attention_tp),
        (jax_parts.mlp_gradient, jax_parts.mlp_tp_gradient),
    ],
)
def test_a_right_sharding_is_proved(baseline: Build, candidate: Build, way: Callable[[Build], Graph]) -> None:
    assert isinstance(scalify.verify(way(baseline), way(candidate)), Proved)


@pytest.mark.parametrize("way", [from_jaxpr, from_text])
@pytest.mark.parametrize(
    ("baseline", "candidate", "line"),
    [
        (jax_parts.mlp, jax_parts.mlp_tp_unsummed, '@ params["down"]'),
        (jax_parts.attention, jax_parts.attention_tp_scaled_by_local_width, "by_local_width"),
    ],
)
def test_a_wrong_one_is_refuted_at_its_line(
    baseline: Build, candidate: Build, line: str, way: Callable[[Build], Graph]
) -> None:
    verdict = scalify.verify(way(baseline), way(candidate))

    assert isinstance(verdict, Refuted)
    assert verdict.suspect is not None
    site = verdict.suspect.candidate.site
    assert site is not None
    text = Path(site.file).read_text().splitlines()
    assert line in text[site.line - 1] or line in site.function
