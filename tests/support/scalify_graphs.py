"""Random well-formed graphs, inputs for them, and random text-form material that need not be well-formed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, Output, Site, TensorType
from scalify.ir.mesh import SINGLE, Mesh, RankInt, groups_along
from scalify.ir.ops.dtypes import DTYPES, KIND_OF

Array = NDArray[Any]
Step = Callable[[st.DrawFn, GraphBuilder, NodeId], NodeId]

MESHES = (SINGLE, Mesh(axes=(("tp", 2),)), Mesh(axes=(("dp", 2), ("tp", 2))))
FLOATS = ("f64", "f32", "bf16")
_UNARY = (
    "neg",
    "abs",
    "tanh",
    "sigmoid",
    "silu",
    "relu",
    "square",
    "sin",
    "erf",
    "gelu",
    "softplus",
    "round",
)
_BINARY = ("add", "sub", "mul", "max", "min", "div", "atan2")


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12) -> Graph:
    """A well-formed graph over floats, of every shape of op that needs no index input."""
    mesh = draw(st.sampled_from(MESHES))
    build = GraphBuilder(draw(st.text(max_size=5)), mesh=mesh)
    shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=3)))
    values = [build.input("x", draw(st.sampled_from(FLOATS)), shape)]
    values.append(build.input("w", "f32", shape, role="parameter"))
    for _ in range(draw(st.integers(1, max_nodes))):
        step = draw(st.sampled_from(STEPS))
        operand = draw(st.sampled_from(values))
        with build.scope(draw(st.sampled_from(("layers.0", "head")))):
            result = step(draw, build, operand)
        if _elements(build, result) <= 512:
            values.append(result)
    build.output("last", values[-1])
    if draw(st.booleans()):
        build.output("other", draw(st.sampled_from(values)), alias="x")
    return build.graph()


def every_node_an_output(graph: Graph) -> Graph:
    """The same graph, showing all it computes."""
    outputs = tuple(Output(name=node.id, value=node.id) for node in graph.nodes)
    return replace(graph, outputs=outputs)


_WIDEST: dict[str, DType] = {"f": "f64", "i": "i64", "b": "bool", "c": "c128"}


def run_op(
    op: str,
    *operands: Array,
    attrs: Mapping[str, Attr] = MappingProxyType({}),
    dtype: DType | None = None,
    shape: tuple[int, ...] | None = None,
) -> Array:
    """What one op makes of these values, on one device."""
    build = GraphBuilder("g")
    values = {f"x{index}": value for index, value in enumerate(operands)}
    inputs = [build.input(name, _WIDEST[value.dtype.kind], value.shape) for name, value in values.items()]
    build.output("y", build.add(op, *inputs, attrs=attrs, dtype=dtype, shape=shape))
    return evaluate(build.graph(), values)["y"][0]


def random_inputs(graph: Graph, *, seed: int) -> dict[str, list[Array]]:
    """Values of a graph's inputs, different on every rank. Integers are 0 or 1, to be safe as indices."""
    rng = np.random.default_rng(seed)
    return {
        str(node.attrs["name"]): [_random(rng, node.type) for _ in range(graph.mesh.size)]
        for node in graph.inputs()
    }


def _random(rng: np.random.Generator, wanted: TensorType) -> Array:
    kind = KIND_OF[wanted.dtype]
    if kind == "float":
        return rng.standard_normal(wanted.shape)
    if kind == "complex":
        return rng.standard_normal(wanted.shape) + 1j * rng.standard_normal(wanted.shape)
    return rng.integers(0, 2, wanted.shape) > 0 if kind == "bool" else rng.integers(0, 2, wanted.shape)


def _elements(build: GraphBuilder, value: NodeId) -> int:
    return int(np.prod(build.type(value).shape))


def _unary(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add(draw(st.sampled_from(_UNARY)), x)


def _binary(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    op = draw(st.sampled_from(_BINARY))
    other = build.constant(draw(st.floats(-4, 4)), "f32") if draw(st.booleans()) else x
    return build.add(op, *draw(st.permutations((x, other))))


def _where(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    zero = build.constant(0, "f32")
    return build.add("where", build.add("gt", x, zero), x, build.add("mul", x, zero))


def _cast(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("cast", x, dtype=draw(st.sampled_from(FLOATS)))


def _flatten(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("reshape", x, shape=(_elements(build, x), 1))


def _transpose(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    perm = draw(st.permutations(range(_rank(build, x))))
    return build.add("transpose", x, perm=tuple(perm))


def _broadcast(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    shape = build.type(x).shape
    return build.add("broadcast", x, shape=(2, *shape), dims=tuple(range(1, len(shape) + 1)))


def _slice(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    """The rank's own half of the first dimension, where it can be halved; else every second element."""
    first, *rest = build.type(x).shape
    half = first // 2
    if first % 2 or build.mesh.size == 1:
        return build.add(
            "slice", x, starts=(0,) * (1 + len(rest)), limits=(first, *rest), steps=(2,) + (1,) * len(rest)
        )
    zeros, ones = (0,) * len(rest), (1,) * len(rest)
    start = RankInt(base=0, terms=((1, 2, half),))
    limit = RankInt(base=half, terms=((1, 2, half),))
    return build.add("slice", x, starts=(start, *zeros), limits=(limit, *rest), steps=(1, *ones))


def _rank(build: GraphBuilder, x: NodeId) -> int:
    return len(build.type(x).shape)


def _axis(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> int:
    return draw(st.integers(0, _rank(build, x) - 1)) if _rank(build, x) else 0


def _concat(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("concat", x, x, axis=_axis(draw, build, x))


def _pad(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    edges = st.tuples(*(st.integers(0, 2) for _ in range(_rank(build, x))))
    zero = build.constant(0.0, "f32")
    return build.add("pad", x, zero, low=draw(edges), high=draw(edges), interior=draw(edges))


def _on_axis(*ops: str) -> Step:
    def step(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
        return build.add(draw(st.sampled_from(ops)), x, axis=_axis(draw, build, x))

    return step


def _reduce(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    kind = draw(st.sampled_from(("sum", "mean", "max", "min", "prod")))
    return build.add("reduce", x, kind=kind, axes=(_axis(draw, build, x),), keepdims=True)


def _norm(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    op = draw(st.sampled_from(("layer_norm", "rms_norm")))
    return build.add(op, x, axes=(_axis(draw, build, x),), eps=1e-5)


def _gram(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    letters = "abcdefgh"[: _rank(build, x)]
    return build.add("einsum", x, x, spec=f"{letters},Z{letters[1:]}->{letters[0]}Z")


def _iota(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    counter = build.add("iota", axis=_axis(draw, build, x), shape=build.type(x).shape)
    return build.add("add", x, counter)


def _rank_number(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("mul", x, build.add("rank", stride=1, size=2))


def _all_reduce(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    kind = draw(st.sampled_from(("sum", "avg", "max", "min", "prod")))
    return build.add("all_reduce", x, kind=kind, groups=groups_along(build.mesh, ("tp",)))


def _all_gather(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("all_gather", x, dim=_axis(draw, build, x), groups=groups_along(build.mesh, ("tp",)))


def _scatter(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    """Gathered first, so that it can be cut into as many parts again."""
    gathered = _all_gather(draw, build, x)
    dim = build.graph().nodes[-1].attrs["dim"]
    return build.add("reduce_scatter", gathered, dim=dim, groups=groups_along(build.mesh, ("tp",)))


def _permute(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    targets = draw(st.permutations(range(build.mesh.size)))
    pairs = tuple((source, target) for source, target in enumerate(targets) if source != 1)
    return build.add("permute", x, pairs=pairs)


def _broadcast_from(draw: st.DrawFn, build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("broadcast_from", x, root=0, groups=groups_along(build.mesh, ("tp",)))


STEPS: tuple[Step, ...] = (
    *(_unary, _binary, _where, _cast, _flatten, _transpose, _broadcast, _slice, _concat, _pad),
    *(_reduce, _norm, _gram, _iota, _rank_number),
    _on_axis("softmax", "log_softmax", "cumsum", "sort", "cumprod"),
    *(_all_reduce, _all_gather, _scatter, _permute, _broadcast_from),
)

_strings = st.text(max_size=6)
_numbers = st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.booleans(), _strings)
_terms = st.tuples(st.integers(1, 64), st.integers(2, 64), st.integers(-99, 99).filter(bool))
_rank_ints = st.builds(
    RankInt, base=st.integers(-99, 99), terms=st.lists(_terms, min_size=1, max_size=3).map(tuple)
)
_leaves: st.SearchStrategy[Attr] = st.one_of(_numbers, _rank_ints)
_attrs: st.SearchStrategy[Attr] = st.one_of(
    _leaves, st.lists(st.one_of(_leaves, st.lists(_leaves, max_size=3).map(tuple)), max_size=3).map(tuple)
)
_sites = st.builds(Site, _strings, st.integers(0, 9999), _strings)
_types = st.builds(
    TensorType, st.sampled_from(DTYPES), st.lists(st.integers(0, 2**40), max_size=4).map(tuple)
)
_nodes = st.builds(
    Node,
    id=_strings.map(NodeId),
    op=_strings,
    operands=st.lists(_strings.map(NodeId), max_size=3).map(tuple),
    attrs=st.dictionaries(_strings, _attrs, max_size=3),
    type=_types,
    site=st.none() | _sites,
    stack=st.lists(_sites, max_size=3).map(tuple),
    scope=_strings,
)

soups: st.SearchStrategy[Graph] = st.builds(
    Graph,
    name=_strings,
    nodes=st.lists(_nodes, max_size=5).map(tuple),
    outputs=st.lists(
        st.builds(Output, name=_strings, value=_strings.map(NodeId), alias=st.none() | _strings), max_size=3
    ).map(tuple),
    mesh=st.sampled_from(MESHES),
    notes=st.lists(_strings, max_size=2).map(tuple),
)
"""Graphs whose every name, number and type is arbitrary: what the text form has to carry."""
