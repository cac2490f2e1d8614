"""A function of JAX as a graph: traced, never compiled or run; no device is needed.

In: the function and its arguments, or ``jax.ShapeDtypeStruct`` in their place. Out: the graph of all ranks of
the mesh that its ``shard_map`` is over, or of one device. Inputs are called after the function's parameters.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax

from scalify.capture.jax.failure import trace_failed
from scalify.capture.jax.primitives import HANDLERS, unknown
from scalify.capture.jax.reader import Reader, jaxprs_in
from scalify.capture.jax.values import shape_of
from scalify.errors import CaptureFailed
from scalify.ir.graph import Graph
from scalify.load.stablehlo.graph import distinct, dotted, graph_of
from scalify.load.stablehlo.listing import Axes, Listing


def jax_graph(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, name: str
) -> Graph:
    """The graph of what the function computes of these arguments."""
    traced = _traced(function, args, kwargs)
    closed = traced.jaxpr
    listing = Listing(name, _axes(closed.jaxpr))
    info = closed.jaxpr.debug_info
    names = distinct([dotted(str(path or "")) for path in info.arg_names])
    inputs = [
        listing.add("parameter", (), shape_of(variable.aval), name=names[place], parameter_number=place)
        for place, variable in enumerate(closed.jaxpr.invars)
    ]
    results = Reader(listing, HANDLERS, unknown).run(closed, inputs)
    if not results:
        raise CaptureFailed("the function returns no array", hint="return what is to be compared")
    return graph_of(listing.module(results), _output_names(traced))


def _traced(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        jitted: Any = function if hasattr(function, "trace") else jax.jit(function)
        return jitted.trace(*args, **kwargs)
    except Exception as error:
        raise trace_failed(error) from error


def _output_names(traced: Any) -> tuple[str, ...]:
    paths, _ = jax.tree_util.tree_flatten_with_path(traced.out_info)
    return distinct([dotted(f"output{jax.tree_util.keystr(path)}") for path, _ in paths])


def _axes(jaxpr: Any) -> Axes:
    """The axes of the mesh that ``shard_map`` is over; of one mesh only."""
    found = list(dict.fromkeys(_meshes(jaxpr)))
    if len(found) > 1:
        raise CaptureFailed(
            f"the program uses shard_map over several meshes: {', '.join(map(str, found))}",
            hint="use one mesh, with all its axes, throughout",
        )
    return found[0] if found else ()


def _meshes(jaxpr: Any) -> Iterator[Axes]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "shard_map":
            yield tuple((str(name), int(size)) for name, size in equation.params["mesh"].shape.items())
        for inner in jaxprs_in(equation.params):
            yield from _meshes(inner)
