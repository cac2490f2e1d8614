"""Relations of inputs and outputs: the assumptions under which a verdict holds.

A relation says what every rank holds of a baseline's tensor, as index maps: from the elements on all ranks
(dimension 0 is the rank, then the local shape) to those of the baseline (dimension 0 of size ``baseline
ranks``).
It is decided from names, shapes and the structure of the graphs, never from whether a proof then succeeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scalify.ir.graph import NodeId
from scalify.layout.maps import IndexMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a candidate's input: the elements of one baseline input, read through ``index``."""

    baseline: NodeId
    index: IndexMap


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRelation:
    """A candidate's input is its ``parts``, one after the other along ``axis`` of the local shape.

    ``text`` says it for people: "replicated", "dimension 1 sharded over tp", "dimension 1 fused of 3 parts,
    each sharded over tp". ``stated`` tells whether the user said so. ``name`` is what the candidate's program
    calls it, ``of`` what the baseline's calls what it is a part of.
    """

    candidate: NodeId
    name: str = ""
    of: tuple[str, ...] = ()
    parts: tuple[Part, ...]
    axis: int = 0
    text: str
    stated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRelation:
    """A candidate's output that must make up a baseline's: through one of ``choices``, by name.

    Choices are total and single-valued for the baseline's tensor: every element is held, and where several
    ranks hold it, each of them must hold it.
    """

    baseline: str
    candidate: str
    choices: tuple[tuple[str, IndexMap], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """All assumptions of one verdict, and what could not be decided.

    ``undecided`` says why, per "input NAME" or "output NAME" of the candidate, or for all of "inputs",
    "outputs" or "mesh", with the candidates that disagree: any entry makes the verdict Unknown. ``unused``
    are baseline inputs that no candidate input covers; ``notes`` are assumptions that shapes cannot show
    (the order of ranks, the order inside fused weights, equal shapes taken as replicated). ``free`` are
    inputs of the candidate that hold nothing of the baseline: they have any values, others on every rank.
    """

    inputs: tuple[InputRelation, ...]
    outputs: tuple[OutputRelation, ...]
    undecided: Mapping[str, str]
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    free: tuple[NodeId, ...] = ()
