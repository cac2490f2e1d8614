"""Programs written otherwise, as compilers and people write them: equal over the reals, rounded elsewhere."""

from collections.abc import Callable, Mapping
from random import Random

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF

COMPARING = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
Write = Callable[["Rewriting", Node, list[NodeId]], NodeId]


class Rewriting:
    """A graph copied node by node, some of them written otherwise; ``rate`` says how often."""

    def __init__(self, graph: Graph, rng: Random, rate: float) -> None:
        self.build = GraphBuilder(graph.name, mesh=graph.mesh)
        self.rng = rng
        self._rate = rate
        self._graph = graph

    def done(self) -> Graph:
        """The whole program, written otherwise."""
        made: dict[NodeId, NodeId] = {}
        for node in self._graph.nodes:
            operands = [made[operand] for operand in node.operands]
            real = KIND_OF[node.type.dtype] == "float" or node.op in COMPARING
            rules = REWRITES.get(node.op, ()) if real and self.rng.random() < self._rate else ()
            real = real and node.op not in COMPARING
            value = self.rng.choice(rules)(self, node, operands) if rules else self.copy(node, operands)
            if real and node.op not in ("input", "constant") and self.rng.random() < self._rate / 4:
                value = self.rng.choice(SAME)(self, value)
            made[node.id] = value
        for output in self._graph.outputs:
            self.build.output(output.name, made[output.value], alias=output.alias)
        return self.build.graph()

    def copy(self, node: Node, operands: list[NodeId]) -> NodeId:
        """The node as it is."""
        keep = str(node.id) if node.op == "input" else None
        return self.build.add(
            node.op, *operands, dtype=node.type.dtype, shape=node.type.shape, id=keep, attrs=node.attrs
        )

    def of(self, op: str, *operands: NodeId | float, **attrs: object) -> NodeId:
        """An op of operands, of which numbers are constants."""
        values = [x if isinstance(x, str) else self.build.constant(x, "f32") for x in operands]
        return self.build.add(op, *values, **attrs)  # pyright: ignore[reportArgumentType] - as it is called

    def shape(self, value: NodeId) -> tuple[int, ...]:
        """Of a value."""
        return self.build.type(value).shape


def rewritten(graph: Graph, rng: Random, rate: float = 0.6) -> Graph:
    """An equal program."""
    return Rewriting(graph, rng, rate).done()


def _commuted(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    return r.copy(node, x[::-1])


def _negated(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("add", x[0], r.of("neg", x[1]))


def _in_parts(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    """a + b as (a + b/3) + 2b/3."""
    del node
    return r.of("add", r.of("add", x[0], r.of("div", x[1], 3.0)), r.of("mul", x[1], 2 / 3))


def _scaled(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("mul", r.of("mul", r.of("mul", x[0], 0.7), x[1]), 1 / 0.7)


def _by_reciprocal(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("mul", x[0], r.of("reciprocal", x[1]))


def _halves(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    """A sum or a mean as the sum of the sums of two parts, of one axis after the other."""
    axes = node.attrs["axes"]
    if node.attrs["kind"] not in ("sum", "mean") or not isinstance(axes, tuple) or not axes:
        return r.copy(node, x)
    value, size = x[0], 1
    for axis in sorted(int(str(each)) for each in axes):
        shape = r.shape(value)
        if shape[axis] < 2:
            return r.copy(node, x)
        size *= shape[axis]
        cut = r.rng.randrange(1, shape[axis])
        parts = [_cut(r, value, axis, *part) for part in ((0, cut), (cut, shape[axis]))]
        sums = [r.of("reduce", part, kind="sum", axes=(axis,), keepdims=True) for part in parts]
        value = r.of("add", *sums)
    if node.attrs["kind"] == "mean":
        value = r.of("mul", value, 1.0 / size)
    return r.build.add("reshape", value, shape=node.type.shape)


def _cut(r: Rewriting, value: NodeId, axis: int, start: int, limit: int) -> NodeId:
    shape = r.shape(value)
    starts = tuple(start if dim == axis else 0 for dim in range(len(shape)))
    limits = tuple(limit if dim == axis else size for dim, size in enumerate(shape))
    return r.of("slice", value, starts=starts, limits=limits, steps=(1,) * len(shape))


def _contracted(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    """A product of two as the sum of two products."""
    left, _, right = str(node.attrs["spec"]).partition("->")
    names = left.split(",")
    shared = [a for a in names[0] if len(names) == 2 and a in names[1] and a not in right]
    if not shared or r.shape(x[0])[names[0].index(shared[0])] < 2:
        return r.copy(node, x)
    size = r.shape(x[0])[names[0].index(shared[0])]
    cut = r.rng.randrange(1, size)
    products = [
        r.of("einsum", *(_cut(r, v, n.index(shared[0]), *part) for v, n in zip(x, names, strict=True)),
             spec=node.attrs["spec"])
        for part in ((0, cut), (cut, size))
    ]  # fmt: skip
    return r.of("add", *products)


def _softmax(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    axis = int(str(node.attrs["axis"]))
    by = r.of("reduce", x[0], kind=r.rng.choice(("max", "mean")), axes=(axis,), keepdims=True)
    e = r.of("exp", r.of("sub", x[0], by))
    return r.of("div", e, r.of("reduce", e, kind="sum", axes=(axis,), keepdims=True))


def _log_softmax(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    return r.of("sub", x[0], r.of("logsumexp", x[0], axes=(int(str(node.attrs["axis"])),), keepdims=True))


def _sigmoid(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("reciprocal", r.of("add", 1.0, r.of("exp", r.of("neg", x[0]))))


def _silu(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("mul", x[0], r.of("sigmoid", x[0]))


def _tanh(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("sub", r.of("mul", r.of("sigmoid", r.of("mul", x[0], 2.0)), 2.0), 1.0)


def _exp(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("mul", r.of("exp", r.of("mul", x[0], 0.3)), r.of("exp", r.of("mul", x[0], 0.7)))


def _square(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("mul", x[0], x[0])


def _rsqrt(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("reciprocal", r.of("sqrt", x[0]))


def _abs(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    if KIND_OF[r.build.type(x[0]).dtype] != "float":
        return r.copy(node, x)
    return r.of("max", x[0], r.of("neg", x[0]))


def _relu(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("where", r.of("gt", x[0], 0.0), x[0], 0.0)


def _chosen(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    del node
    return r.of("where", r.of("not", x[0]), x[2], x[1])


def _compared(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    """Both sides times the same positive number."""
    if any(KIND_OF[r.build.type(each).dtype] != "float" for each in x):
        return r.copy(node, x)
    return r.of(node.op, r.of("mul", x[0], 0.3), r.of("mul", x[1], 0.3))


def _rms(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    axes = tuple(int(str(each)) for each in _tuple(node.attrs["axes"]))
    rank = len(r.shape(x[0]))
    if axes != tuple(range(rank - len(axes), rank)):
        return r.copy(node, x)
    square = r.of("reduce", r.of("square", x[0]), kind="mean", axes=axes, keepdims=True)
    by = r.of("rsqrt", r.of("add", square, float(str(node.attrs["eps"]))))
    y = r.of("mul", x[0], by)
    return r.of("mul", y, x[1]) if len(x) > 1 else y


def _layer(r: Rewriting, node: Node, x: list[NodeId]) -> NodeId:
    """Its variance as the mean of squares less the square of the mean."""
    axes = tuple(int(str(each)) for each in _tuple(node.attrs["axes"]))
    rank = len(r.shape(x[0]))
    if axes != tuple(range(rank - len(axes), rank)):
        return r.copy(node, x)
    mean = r.of("reduce", x[0], kind="mean", axes=axes, keepdims=True)
    square = r.of("reduce", r.of("square", x[0]), kind="mean", axes=axes, keepdims=True)
    variance = r.of("sub", square, r.of("square", mean))
    y = r.of(
        "div", r.of("sub", x[0], mean), r.of("sqrt", r.of("add", variance, float(str(node.attrs["eps"]))))
    )
    y = r.of("mul", y, x[1]) if len(x) > 1 else y
    return r.of("add", y, x[2]) if len(x) > 2 else y


def _tuple(value: object) -> tuple[object, ...]:
    assert isinstance(value, tuple)
    return value  # pyright: ignore[reportUnknownVariableType] - of numbers, as the op says


def _and_back(r: Rewriting, x: NodeId) -> NodeId:
    return r.of("mul", r.of("mul", x, 0.1), 10.0)


def _rounded(r: Rewriting, x: NodeId) -> NodeId:
    """Casts between floats change nothing over the reals."""
    dtype = r.build.type(x).dtype
    return r.build.add("cast", r.build.add("cast", x, dtype="bf16"), dtype=dtype)


def _turned(r: Rewriting, x: NodeId) -> NodeId:
    perm = tuple(reversed(range(len(r.shape(x)))))
    return r.of("transpose", r.of("transpose", x, perm=perm), perm=perm)


def _there(r: Rewriting, x: NodeId) -> NodeId:
    return r.of("sub", r.of("add", x, 1 / 3), 1 / 3)


SAME: tuple[Callable[[Rewriting, NodeId], NodeId], ...] = (_and_back, _rounded, _turned, _there)
REWRITES: Mapping[str, tuple[Write, ...]] = {
    "add": (_commuted, _in_parts), "mul": (_commuted, _scaled), "sub": (_negated,), "div": (_by_reciprocal,),
    "max": (_commuted,), "min": (_commuted,), "reduce": (_halves,), "einsum": (_contracted,),
    "softmax": (_softmax,), "log_softmax": (_log_softmax,), "sigmoid": (_sigmoid,), "silu": (_silu,),
    "tanh": (_tanh,), "exp": (_exp,), "square": (_square,), "rsqrt": (_rsqrt,), "abs": (_abs,),
    "relu": (_relu,), "where": (_chosen,), "lt": (_compared,), "le": (_compared,), "gt": (_compared,),
    "ge": (_compared,), "eq": (_compared,), "ne": (_compared,), "rms_norm": (_rms,), "layer_norm": (_layer,),
}  # fmt: skip
"""Of floats; ops of other kinds are copied."""
