"""Mistakes as they are made in parallel models, by class, and a choice among them that is always the same."""

import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import wrong_collectives as collectives
import wrong_formulas as formulas
import wrong_layouts as layouts
from graph_edits import Wrong

from scalify.ir.graph import Graph, NodeId

SEED = 7

Class = Callable[[Graph], Iterator[tuple[str, Wrong | None]]]

CLASSES: Mapping[str, Class] = MappingProxyType({
    each.__name__: each
    for each in (
        collectives.missing_collective,
        collectives.collective_twice,
        collectives.wrong_operator,
        collectives.wrong_group,
        collectives.partial_as_whole,
        collectives.whole_as_partial,
        collectives.nonlinear_on_partial,
        collectives.added_to_partial,
        collectives.sum_behind_a_factor,
        collectives.mean_of_means,
        formulas.wrong_divisor,
        formulas.divided_by_ranks,
        formulas.scale_twice,
        formulas.scale_never,
        formulas.dropped_term,
        formulas.dropped_operation,
        formulas.stale_value,
        formulas.lost_write,
        formulas.wrong_weight,
        formulas.wrong_stage,
        formulas.wrong_axis,
        formulas.wrong_epsilon,
        layouts.wrong_shard,
        layouts.wrong_part,
        layouts.wrong_heads,
        layouts.illegal_reshape,
        layouts.wrong_order,
        layouts.wrong_rotation,
        layouts.wrong_positions,
        layouts.wrong_mask,
    )
})  # fmt: skip


class Mutant(NamedTuple):
    """``name`` is its own among all; ``exact`` and ``places`` are the nodes that a verdict may blame."""

    name: str
    kind: str
    graph: Graph
    exact: frozenset[NodeId]
    places: frozenset[NodeId]


def chosen(model: str, graph: Graph, *, most: int) -> tuple[Mutant, ...]:
    """So many of each class, drawn with ``SEED``; all where there are no more."""
    found: list[Mutant] = []
    for kind, mistakes in CLASSES.items():
        fitting = [(label, wrong) for label, wrong in mistakes(graph) if wrong is not None]
        drawn = random.Random(f"{SEED}/{model}/{kind}").sample(fitting, min(most, len(fitting)))
        for label, wrong in sorted(drawn, key=lambda each: each[0]):
            found.append(Mutant(f"{model}/{kind}/{label}", kind, wrong.graph, wrong.exact, wrong.places))
    return tuple(found)
