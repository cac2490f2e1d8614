"""Graphs from files: one front end per source format, chosen by what is in the file.

In: paths, not trusted. Out: well-formed graphs, or one line that says what is wrong. Nothing in a file is
ever executed or unpickled, and sizes are bounded before anything is built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.load.sniff import Kind, kind_of
from scalify.load.together import together

__all__ = ["load", "load_side"]

MAX_SIZE_BYTES = 2**31 - 1


Weights = Mapping[str, NDArray[Any]]


def load(path: Path) -> Graph:
    """The graph in one file. Of a program captured per rank it is what that rank runs."""
    graph, _ = _loaded(path, {})
    return graph


def load_side(paths: Sequence[Path], weights: Weights = MappingProxyType({})) -> Graph:
    """The program of one side of a proof: one file for all ranks, or one file for each.

    Archives of a per-rank capture say which rank they are; other files are taken in the order given.
    ``weights`` are values by names, by which weights without names of their own are known (ONNX).
    """
    if not paths:
        raise InvalidGraph("no file is given", hint="name at least one file for each side")
    loaded = [_loaded(path, weights) for path in paths]
    if len(loaded) == 1 and loaded[0][1] is None:
        return loaded[0][0]
    by_rank: dict[int, Graph] = {}
    for place, (path, (graph, known_rank)) in enumerate(zip(paths, loaded, strict=True)):
        rank = place if known_rank is None else known_rank
        if rank in by_rank:
            raise InvalidGraph(f"{path.name} is rank {rank} once more", hint="give one graph for every rank")
        by_rank[rank] = graph
    notes = dict.fromkeys(note for graph, _ in loaded for note in graph.notes)
    whole = replace(together(by_rank, _mesh([graph for graph, _ in loaded])), notes=tuple(notes))
    check(whole)
    return whole


def _mesh(graphs: Sequence[Graph]) -> Mesh:
    """The mesh that the files state, or one axis over as many ranks as there are files."""
    stated = graphs[0].mesh
    return stated if stated.size > 1 else Mesh(axes=(("rank", len(graphs)),))


def _loaded(path: Path, weights: Weights) -> tuple[Graph, int | None]:
    """The graph, and the rank that it is of where the file says that it is of one."""
    kind = kind_of(path)
    if path.stat().st_size > MAX_SIZE_BYTES:
        raise InvalidGraph(f"{path.name} is larger than 2 GiB", hint="keep weights out of the graph")
    try:
        graph = _read(path, kind, weights)
        check(graph)
    except InvalidGraph as error:
        raise InvalidGraph(f"{path.name}: {error}", hint=error.hint) from None
    per_rank = kind is Kind.TORCH_EXPORT and graph.mesh.size > 1
    return graph, _rank_of(path) if per_rank else None


def _read(path: Path, kind: Kind, weights: Weights) -> Graph:
    # Each front end is imported when a file needs it: protobuf is for serialized HLO only.
    match kind:
        case Kind.HLO_PROTOBUF:
            from scalify.load.hlo import read_protobuf

            return read_protobuf(path.read_bytes())
        case Kind.HLO_TEXT:
            from scalify.load.hlo import read_text

            return read_text(_text(path))
        case Kind.SCALIFY_TEXT:
            from scalify.ir import text

            return text.load(path)
        case Kind.TORCH_EXPORT:
            from scalify.load.torch_export import read

            return read(path)
        case Kind.ONNX:
            from scalify.load.onnx import read as read_onnx

            return read_onnx(path.read_bytes(), weights)
        case Kind.STABLEHLO:
            from scalify.load.stablehlo import read as read_stablehlo

            return read_stablehlo(path.read_bytes(), str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidGraph("it is not UTF-8 text throughout", hint="write the graph again") from None


def _rank_of(path: Path) -> int:
    from scalify.load.torch_export.archive import Archive
    from scalify.load.torch_export.beside import beside

    with Archive(path) as archive:
        return beside(archive).rank
