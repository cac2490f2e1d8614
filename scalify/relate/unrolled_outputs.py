"""Outputs of ranks that stand side by side: which of the baseline's each is, and which window of it.

In: both graphs, and what is stated of outputs. Out: a relation for every rank's output. That all windows make
up the baseline's follows from their sizes.
"""

from collections.abc import Mapping, Sequence

from scalify.errors import InvalidRelations
from scalify.ir.graph import Graph, Output, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.relate.model import OutputRelation
from scalify.relate.shares import Shares, of_rank, shares, window_index, window_text
from scalify.relate.stated import StatedOutput, StatedSplit, unknown

Pairs = list[tuple[Output, list[Output]]]


def pair_outputs(
    baseline: Graph, candidate: Graph, stated: Sequence[StatedOutput], undecided: dict[str, str]
) -> Pairs:
    """Each output of the baseline with those of the ranks: as stated, else by name, else in order."""
    ones = {output.name: output for output in baseline.outputs}
    others: dict[str, list[Output]] = {}
    for output in sorted(candidate.outputs, key=lambda output: of_rank(output.name)[1]):
        others.setdefault(of_rank(output.name)[0], []).append(output)
    given = {one.candidate: one.baseline for one in stated}
    for name in given:
        if all(name not in [output.name for output in group] for group in others.values()):
            raise unknown("output of the candidate", name, [output.name for output in candidate.outputs])
    named = {name: {given[o.name] for o in group if o.name in given} for name, group in others.items()}
    pairs: Pairs = []
    for name, wanted in named.items():
        if not wanted:
            continue
        if len(wanted) > 1 or not wanted <= ones.keys():
            raise unknown("output of the baseline that is left", sorted(wanted)[-1], ones)
        pairs.append((ones.pop(wanted.pop()), others.pop(name)))
    if len(ones) != len(others):
        undecided["outputs"] = f"the baseline gives {len(baseline.outputs)}, the candidate {len(named)}"
    elif ones.keys() == others.keys():
        pairs.extend((ones[name], group) for name, group in others.items())
    else:
        pairs.extend(zip(ones.values(), others.values(), strict=True))
    return pairs


def relate_outputs(
    baseline: Graph,
    candidate: Graph,
    pairs: Pairs,
    stated: Sequence[StatedOutput],
    undecided: dict[str, str],
) -> tuple[OutputRelation, ...]:
    """Every rank's output is the whole, or a window in rank order: as all their shapes say."""
    types = _types(baseline), _types(candidate)
    layouts = {one.candidate: one.splits for one in stated if one.splits is not None}
    found: list[OutputRelation] = []
    for one, others in pairs:
        whole, held = types[0][one.name], [types[1][other.name] for other in others]
        made = shares(whole.shape, [local.shape for local in held])
        if any(KIND_OF[local.dtype] != KIND_OF[whole.dtype] for local in held):
            made = f"the baseline's is {whole.dtype}, the ranks' are of another kind"
        if isinstance(made, str):
            undecided[f"output {one.name}"] = made
            continue
        starts = made.starts() or (0,) * len(held)
        for other, local, start in zip(others, held, starts, strict=True):
            _check_stated(other.name, layouts, made)
            text = "replicated" if made.dim is None else window_text(made.dim, start, local.shape, one.name)
            index = window_index(made.dim or 0, start, local.shape, whole.shape)
            found.append(OutputRelation(baseline=one.name, candidate=other.name, choices=((text, index),)))
    return tuple(found)


def _check_stated(name: str, layouts: Mapping[str, Sequence[StatedSplit]], made: Shares) -> None:
    """Of one rank's output it can be stated that it is the whole; windows follow from sizes."""
    if layouts.get(name) or (name in layouts and made.dim is not None):
        raise InvalidRelations(
            f"output {name!r} is one rank's: it is not laid out over axes, and its shape says what it is",
            hint="say only of which output it is: baseline = ...",
        )


def _types(graph: Graph) -> dict[str, TensorType]:
    nodes = {node.id: node.type for node in graph.nodes}
    return {output.name: nodes[output.value] for output in graph.outputs}
