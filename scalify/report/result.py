"""A verification as plain data: everything that a report says, and nothing that only a prover understands.

It is what the worker sends, what ``--format json`` prints, and what ``explain`` reads again. A field that is
added leaves the version as it is, one that goes or changes its meaning raises it (docs/scalify-json.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from scalify.ir.graph import Graph, Site
from scalify.precision.finding import PrecisionFinding
from scalify.verdict import OutputResult, Reason, Suspect, Witness, Work

Outcome = Literal["proved", "refuted", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file as it was named, and what was in it. ``sha256`` is None where the file was not read."""

    path: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of the ranks."""

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One side. ``nodes`` and ``mesh`` are None where it was not loaded; an empty mesh is one device."""

    files: tuple[File, ...]
    name: str = ""
    nodes: int | None = None
    mesh: tuple[Axis, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What was taken for granted of one input of the candidate: how it lies, and of what it is a part."""

    input: str
    of: tuple[str, ...]
    text: str
    stated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionsDone:
    """How far the proof came."""

    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What a proof leans on: rules by version, and what counts as equal."""

    rules_version: int
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What all took, processes and imports included. ``cpu_s`` is None where nobody counted it."""

    cpu_s: float | None
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The whole answer. ``detail`` says how the prover ended where it did not end by itself.

    ``witness`` is that of a refutation, ``witness_file`` where it was written to; ``lead`` is what an unknown
    one has instead, where values differed in something smaller than the given programs. ``precision`` says
    where the candidate rounds more than the baseline, whatever the verdict. ``sources`` are lines of source
    text by ``place_key``, where the file was at hand: those of places, and those around them.
    """

    scalify: str
    verdict: Outcome
    reason: Reason | None
    detail: str = ""
    baseline: Program
    candidate: Program
    outputs: tuple[OutputResult, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    witness: Witness | None = None
    witness_file: str | None = None
    suspect: Suspect | None = None
    missing: tuple[str, ...] = ()
    lead: str = ""
    precision: tuple[PrecisionFinding, ...] = ()
    progress: RegionsDone | None = None
    trust: Trust | None = None
    work: Work | None = None
    cost: Cost | None = None
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def place_key(site: Site) -> str:
    """``model.py:12``."""
    return f"{site.file}:{site.line}"


def axes_of(graph: Graph) -> tuple[Axis, ...]:
    """The ranks of a program; those that stand side by side are along one axis."""
    if graph.unrolled:
        return (Axis(name="rank", size=graph.unrolled),)
    return tuple(Axis(name=name, size=size) for name, size in graph.mesh.axes)
