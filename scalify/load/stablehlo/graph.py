"""From a listing to a graph with the names that JAX's own program has for what goes in and out."""

import re
from collections.abc import Sequence
from dataclasses import replace

from scalify.ir.graph import Graph, Output
from scalify.load.hlo.program import Module
from scalify.load.hlo.translate import translate
from scalify.load.stablehlo.meaning import DIALECT

_KEY = re.compile(r"""\[(?:'([^'\]]*)'|"([^"\]]*)"|([^\]]*))\]""")


def graph_of(module: Module, outputs: Sequence[str]) -> Graph:
    """The graph of a module whose results have these names."""
    graph = translate(module, dialect=DIALECT)
    return replace(graph, outputs=tuple(_named(output, outputs) for output in graph.outputs))


def _named(output: Output, names: Sequence[str]) -> Output:
    kind, _, place = output.name.partition(".")
    return replace(output, name=names[int(place)]) if kind == "output" else output


def dotted(path: str) -> str:
    """A path into a tree as a name: ``params['layers'][0].wq`` is ``params.layers.0.wq``."""
    return _KEY.sub(lambda key: "." + next(part for part in key.groups() if part is not None), path).lstrip(
        "."
    )


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once: what is there already gets its place."""
    found: dict[str, None] = {}
    for place, name in enumerate(names):
        wanted = name or f"arg{place}"
        found[wanted if wanted not in found else f"{wanted}#{place}"] = None
    return tuple(found)
