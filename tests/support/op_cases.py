"""For every op of the IR, nodes that use it in several ways: a lowering must mean the same of each.

One long table on purpose, like the table of ops that it mirrors.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId
from scalify.ir.mesh import SINGLE, Groups, Mesh, RankInt, groups_along
from scalify.ir.ops.dtypes import KIND_OF

Array = NDArray[Any]
Make = Callable[[GraphBuilder], NodeId]

MESHES = tuple(
    Mesh(axes=axes)
    for axes in ((("tp", 2),), (("tp", 4),), (("dp", 2), ("tp", 2)), (("tp", 6),), (("dp", 2), ("tp", 3)))
)
UNEXECUTABLE = frozenset({"random", "opaque"})
"""Ops that cannot be run: their lowerings have tests of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCase:
    """One node of ``op`` on inputs, and the mesh it runs on."""

    op: str
    mesh: Mesh
    make: Make

    def graph(self) -> Graph:
        """The graph whose output ``y`` is the node."""
        build = GraphBuilder(self.op, mesh=self.mesh)
        build.output("y", self.make(build))
        return build.graph()


def op_cases(op: str) -> Iterator[OpCase]:
    """All cases of one op; none where the table has no line for it."""
    meshes = MESHES if op in COLLECTIVES else (SINGLE, MESHES[0])
    for mesh in meshes:
        for make in COLLECTIVES[op](mesh) if op in COLLECTIVES else MAKES.get(op, ()):
            yield OpCase(op=op, mesh=mesh, make=make)


def values_for(graph: Graph, rng: np.random.Generator) -> dict[str, list[Array]]:
    """Inputs, different on every rank.

    Integers are below the number in an input's name, if there is one; ``positive`` ones are, and a ``mask``
    allows the first of each row.
    """
    return {
        str(node.attrs["name"]): [_value(node, rng) for _ in range(graph.mesh.size)]
        for node in graph.inputs()
    }


def _value(node: Node, rng: np.random.Generator) -> Array:
    shape, kind, name = node.type.shape, KIND_OF[node.type.dtype], str(node.attrs["name"])
    if kind == "float":
        value = rng.standard_normal(shape)
        return np.abs(value) + 0.1 if name.startswith("positive") else value
    if kind == "complex":
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    if kind == "bool":
        truth = rng.integers(0, 2, shape) > 0
        return truth | (np.arange(shape[-1]) == 0) if name == "mask" else truth
    limit = int("".join(filter(str.isdigit, name)) or 0)
    return (
        rng.integers(0, limit, shape)
        if limit
        else rng.integers(-3 if node.type.dtype[0] == "i" else 0, 4, shape)
    )


def _on(
    op: str,
    *inputs: tuple[str, tuple[int, ...]],
    names: tuple[str, ...] = (),
    to: tuple[int, ...] | None = None,
    dtype: str | None = None,
    more: Mapping[str, Attr] = MappingProxyType({}),
    **attrs: Attr,
) -> Make:
    """The op on inputs of these types, with these attributes; ``to`` and ``dtype`` are its own type."""

    def make(build: GraphBuilder) -> NodeId:
        given = [
            build.input(names[at] if at < len(names) else "abcdef"[at], cast(DType, kind), shape)
            for at, (kind, shape) in enumerate(inputs)
        ]
        return build.add(op, *given, shape=to, dtype=cast("DType | None", dtype), attrs={**more, **attrs})

    return make


def _pairs(op: str, *dtypes: str) -> tuple[Make, ...]:
    shapes = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (4, 1, 3)), ((), (3,)), ((1, 3), (2, 1)))
    return tuple(_on(op, (dtype, one), (dtype, other)) for dtype in dtypes for one, other in shapes)


def _unary(op: str, *dtypes: str) -> tuple[Make, ...]:
    return tuple(_on(op, (dtype, shape)) for dtype in dtypes for shape in ((2, 3), (), (1,)))


def _against_number(op: str, *numbers: float) -> tuple[Make, ...]:
    """The op with a constant on either side, in whose lowering something may vanish."""

    def made(number: float, shape: tuple[int, ...], swap: bool) -> Make:
        def make(build: GraphBuilder) -> NodeId:
            pair = (build.input("positive", "f32", (3,)), build.constant(number, "f32", shape))
            return build.add(op, *(reversed(pair) if swap else pair))

        return make

    shapes = ((), (1,), (3,), (2, 1))
    return tuple(made(n, shape, swap) for n in numbers for shape in shapes for swap in (False, True))


def _indices(op: str) -> tuple[Make, ...]:
    """The op on counters, which lowerings keep as expressions."""

    def made(other: int | None, axis: int) -> Make:
        def make(build: GraphBuilder) -> NodeId:
            counter = build.add("iota", axis=1, shape=(2, 3))
            second = (
                build.add("iota", axis=axis, shape=(2, 3)) if other is None else build.constant(other, "i64")
            )
            return build.add(op, counter, second)

        return make

    return tuple(made(other, axis) for other in (None, 0, 1, 2, -1) for axis in (0, 1))


def _cast(source: str, target: str) -> Make:
    return _on("cast", (source, (3, 4)), dtype=target)


def _constants() -> Iterator[Make]:
    for data, dtype, shape in (
        ((1.5,), "f32", (2, 2)),
        ((0, 1, 2), "i64", (3,)),
        ((4, 2, 0), "i64", (3,)),
        ((-1, 0, 1), "i64", (3,)),
        ((1.0, 2.0), "f32", (2,)),
        ((0.5, 1.0), "f32", (2,)),
        ((1.0, float("inf")), "f32", (2,)),
        ((7,), "i32", ()),
        ((float("-inf"),), "f32", (3,)),
        ((float("nan"),), "f32", (1,)),
        ((float("nan"),), "f32", (3,)),
        ((True,), "bool", (2,)),
        ((True, False), "bool", (2,)),
        ((1.0, 2.0), "c64", (2,)),
        ((1.0, 1.0), "c64", ()),
        ((1.0, 2.0, 3.0, 4.0), "c64", (2,)),
        ((2**62, 2**62 + 1), "i64", (2,)),
        ((3, 3, 3), "u8", (3,)),
        ((-65504,), "i32", ()),
    ):
        yield lambda build, d=data, t=dtype, s=shape: build.constant(d, cast(DType, t), s)
    for base, terms in (
        (0, ((1, 2, 3),)),
        (-5, ((1, 2, 3),)),
        (4, ((1, 4, -2),)),
        (1, ((2, 2, 1), (1, 2, 5))),
    ):
        by_rank = RankInt(base=base, terms=terms)
        yield lambda build, r=by_rank: build.constant(r, "i64", (2,))
        yield lambda build, r=by_rank: build.constant((r, 7), "i64", (2,))


def _reductions() -> Iterator[Make]:
    for kind in ("sum", "mean", "max", "min", "prod", "any", "all"):
        for axes in ((0,), (1, 2), (2, 0), (0, 1, 2), ()):
            for keepdims in (False, True):
                yield _on("reduce", ("f32", (2, 3, 2)), kind=kind, axes=axes, keepdims=keepdims)
        for dtype in ("bool", "i32"):
            yield _on("reduce", (dtype, (2, 3)), kind=kind, axes=(1,), keepdims=False)
        yield lambda build, k=kind: build.add("reduce", _repeated(build), kind=k, axes=(0, 1), keepdims=False)
        if kind not in ("max", "min"):
            yield _on("reduce", ("f32", (2, 0)), kind=kind, axes=(1,), keepdims=True)


def _repeated(build: GraphBuilder) -> NodeId:
    return build.add("broadcast", build.input("x", "f32", (3,)), dims=(1,), shape=(4, 3))


def _slices() -> Iterator[Make]:
    for starts, limits, steps in (
        ((0, 1), (4, 5), (1, 2)),
        ((1, 0), (4, 6), (2, 3)),
        ((2, 2), (3, 3), (1, 1)),
    ):
        yield _on("slice", ("f32", (4, 6)), starts=starts, limits=limits, steps=steps)
    start, limit = (RankInt(base=at, terms=((1, 2, 2),)) for at in (0, 2))
    yield _on("slice", ("f32", (4, 6)), starts=(start, 0), limits=(limit, 6), steps=(1, 1))
    yield _on("slice", ("f32", (4, 0)), starts=(0, 0), limits=(4, 0), steps=(1, 1))


def _updates() -> Iterator[Make]:
    for starts in ((0, 0), (1, 2), (2, 4), (0, 3)):
        yield _on("update_slice", ("f32", (4, 6)), ("f32", (2, 2)), starts=starts)
    yield _on("update_slice", ("f32", (4, 6)), ("f32", (4, 6)), starts=(0, 0))
    yield _on("update_slice", ("f32", (4, 6)), ("f32", (0, 6)), starts=(2, 0))
    by_rank = RankInt(base=0, terms=((1, 2, 2),))
    yield _on("update_slice", ("f32", (4, 6)), ("f32", (2, 6)), starts=(by_rank, 0))


def _pads() -> Iterator[Make]:
    for low, high, interior in (
        ((1, 0), (0, 2), (0, 0)),
        ((-1, 2), (1, -1), (0, 0)),
        ((-1, -1), (0, 0), (0, 0)),
        ((0, 0), (0, 0), (1, 0)),
    ):
        yield _on("pad", ("f32", (3, 3)), ("f32", ()), low=low, high=high, interior=interior)
    yield _on("pad", ("f32", (3, 0)), ("f32", ()), low=(0, 1), high=(0, 1), interior=(0, 0))


def _einsums() -> Iterator[Make]:
    sizes = {"a": 2, "b": 3, "c": 4, "d": 1}
    for spec in (
        "ab,bc->ac",
        "ab,cb->ca",
        "abc,abc->ab",
        "a,b->ab",
        "ab,ab->",
        "abc->ca",
        "ab,bc,c->a",
        "abd,dc->cab",
        "ab,c->a",
        "abc->a",
        "ab,ab->ab",
        ",a->a",
    ):
        operands = spec.partition("->")[0].split(",")
        yield _on("einsum", *(("f32", tuple(sizes[n] for n in letters)) for letters in operands), spec=spec)
    yield _on("einsum", ("f32", (2, 0)), ("f32", (0, 3)), spec="ab,bc->ac")
    yield _on("einsum", ("c64", (2, 3)), ("c64", (3,)), spec="ab,b->a")
    yield _on("einsum", ("bool", (2, 3)), ("bool", (3,)), spec="ab,b->a")


def _convolutions() -> Iterator[Make]:
    for groups, strides, padding, dilation in (
        (1, (1, 1), ((0, 0), (0, 0)), (1, 1)),
        (2, (2, 1), ((1, 1), (0, 1)), (1, 2)),
        (1, (1, 2), ((2, 0), (0, 1)), (2, 1)),
    ):
        yield _on(
            "conv",
            ("f32", (2, 4, 5, 6)),
            ("f32", (6, 4 // groups, 2, 3)),
            groups=groups,
            strides=strides,
            padding=padding,
            dilation=dilation,
        )
    yield _on(
        "conv",
        ("f32", (1, 4, 6)),
        ("f32", (4, 1, 3)),
        groups=4,
        strides=(1,),
        padding=((2, 0),),
        dilation=(1,),
    )


def _norms(op: str) -> Iterator[Make]:
    for axes in ((2,), (1, 2), (0,), (0, 2)):
        shape = tuple((2, 3, 3)[axis] for axis in axes)
        for count in range(3 if op == "layer_norm" else 2):
            yield _on(op, ("f32", (2, 3, 3)), *(("f32", shape),) * count, axes=axes, eps=1e-5)


def _attentions() -> Iterator[Make]:
    for lead, heads, shared in (((), 2, 2), ((2,), 4, 2), ((2,), 4, 1), ((2, 2), 2, 1)):
        q = (*lead, heads, 3, 4)
        k, v = (*lead, shared, 5, 4), (*lead, shared, 5, 2)
        for causal in (False, True):
            masks: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = (
                (),
                (("f32", (3, 5)),),
                (("f32", (heads, 1, 5)),),
            )
            for mask in masks:
                yield _on("attention", ("f32", q), ("f32", k), ("f32", v), *mask, scale=0.5, causal=causal)
        yield _on(
            "attention",
            ("f32", q),
            ("f32", k),
            ("f32", v),
            ("bool", (3, 5)),
            names=("q", "k", "v", "mask"),
            scale=0.5,
            causal=False,
        )


def _by_axis(op: str, dtype: str = "f32", **attrs: Attr) -> tuple[Make, ...]:
    return tuple(_on(op, (dtype, (2, 3, 4)), axis=axis, more=attrs) for axis in range(3))


def _put_side_by_side(build: GraphBuilder, first: int, mode: str) -> NodeId:
    """Rows whose numbers are known, and follow each other."""
    rows = build.add("add", build.add("iota", axis=0, shape=(2,)), build.constant(first, "i64"))
    x, src = build.input("x", "f32", (4, 3)), build.input("src", "f32", (2, 3))
    return build.add("index_put", x, src, rows, mode=mode)


def _put_into_pieces(build: GraphBuilder, rows: int, mode: str) -> NodeId:
    """Into what is put together itself."""
    parts = [build.input(name, "f32", (2, 3)) for name in ("x", "y")]
    src = build.input("src", "f32", (rows, 3))
    whole = build.add("concat", parts[0], build.add("tanh", parts[1]), axis=0)
    return build.add("index_put", whole, src, build.input("i4", "i64", (rows,)), mode=mode)


def _put_single_into_pieces(build: GraphBuilder, mode: str) -> NodeId:
    parts = [build.input(name, "f32", (2, 3)) for name in ("x", "y")]
    whole = build.add("concat", parts[0], build.add("tanh", parts[1]), axis=0)
    places = [build.input(name, "i64", (2,)) for name in ("i4", "j3")]
    return build.add("index_put", whole, build.input("src", "f32", (2,)), *places, mode=mode)


def _scatters() -> Iterator[Make]:
    for mode in ("set", "add"):
        for x, indices, src in (((4, 3), (4, 2), (4, 2)), ((3, 4), (2, 2), (3, 4)), ((4, 4), (2, 3), (3, 3))):
            yield _on(
                "scatter",
                ("f32", x),
                ("i64", indices),
                ("f32", src),
                names=("x", "index3", "src"),
                axis=1,
                mode=mode,
            )
        yield _on(
            "scatter",
            ("f32", (3, 4)),
            ("i64", (3, 9)),
            ("f32", (4, 9)),
            names=("x", "index3", "src"),
            axis=1,
            mode=mode,
        )
        yield _on(
            "scatter",
            ("f32", (3, 4)),
            ("i64", (2, 4)),
            ("f32", (2, 4)),
            names=("x", "index3", "s"),
            axis=0,
            mode=mode,
        )


def _pools(op: str) -> Iterator[Make]:
    extra: Mapping[str, Attr] = {"dilation": (1, 2)} if op == "max_pool" else {"count_padding": False}
    yield _on(op, ("f32", (1, 2, 5, 6)), kernel=(2, 2), strides=(1, 2), padding=((1, 0), (0, 1)), more=extra)
    extra = {"dilation": (1,)} if op == "max_pool" else {}
    yield _on(op, ("f32", (2, 2, 5)), kernel=(3,), strides=(1,), padding=((0, 0),), more=extra)


def _scalars(build: GraphBuilder, *limits: int) -> list[NodeId]:
    return [build.input(f"{'ijk'[at]}{limit}", "i64", ()) for at, limit in enumerate(limits)]


def _groups(mesh: Mesh) -> Iterator[Groups]:
    """Groups over every choice of axes, and some that are not along axes or not in order."""
    names = [name for name, _ in mesh.axes]
    for count in range(1, len(names) + 1):
        for chosen in combinations(names, count):
            yield groups_along(mesh, chosen)
    ranks = tuple(range(mesh.size))
    yield (ranks[::-1],)
    yield tuple((rank,) for rank in ranks)
    if mesh.size == 4:
        yield (0, 3), (1, 2)
    if mesh.size == 6:
        yield (0, 1), (2, 3), (4, 5)
        yield (0, 2, 4), (1, 3, 5)
        yield (0, 1), (2, 5), (3, 4)


def _grouped(
    op: str, *variants: Mapping[str, Attr], dtypes: tuple[str, ...] = ("f32",)
) -> Callable[[Mesh], Iterator[Make]]:
    def makes(mesh: Mesh) -> Iterator[Make]:
        for groups in _groups(mesh):
            for attrs in variants:
                for dtype in dtypes:
                    yield _on(op, (dtype, (12, 12)), groups=groups, more=attrs)
                for digit in ((1, 2), (2, 3), (3, 2), (1, 3), (8, 2)) if attrs == variants[0] else ((1, 2),):
                    yield lambda build, d=digit, g=groups, a=attrs: build.add(
                        op, _depending_on(build, *d), groups=g, attrs=a
                    )

    return makes


def _depending_on(build: GraphBuilder, stride: int, size: int) -> NodeId:
    """The same on all ranks, except that it differs along a digit of the rank."""
    counter = build.add("iota", axis=0, shape=(12, 12))
    return build.add(
        "cast", build.add("add", counter, build.add("rank", stride=stride, size=size)), dtype="f32"
    )


def _permutations(mesh: Mesh) -> Iterator[Make]:
    ranks = range(mesh.size)
    for pairs in (
        tuple((rank, (rank + 1) % mesh.size) for rank in ranks),
        tuple((rank, rank ^ 1) for rank in ranks),
        tuple((rank, mesh.size - 1 - rank) for rank in ranks),
        ((0, 1),),
        (),
        tuple((r, r + 1) for r in ranks[:-1]),
    ):
        yield _on("permute", ("f32", (2, 3)), pairs=pairs)


_KINDS: tuple[Mapping[str, Attr], ...] = tuple(
    {"kind": kind} for kind in ("sum", "avg", "max", "min", "prod")
)

COLLECTIVES: Mapping[str, Callable[[Mesh], Iterator[Make]]] = {
    "all_reduce": _grouped("all_reduce", *_KINDS, dtypes=("f32", "i32", "bool")),
    "all_gather": _grouped("all_gather", {"dim": 0}, {"dim": 1}),
    "reduce_scatter": _grouped(
        "reduce_scatter", *({**kind, "dim": dim} for kind in _KINDS for dim in (0, 1))
    ),
    "all_to_all": _grouped(
        "all_to_all", *({"split_dim": s, "concat_dim": c} for s in (0, 1) for c in (0, 1))
    ),
    "broadcast_from": _grouped("broadcast_from", {"root": 0}),
    "permute": _permutations,
}

_F = ("f32", "i32")
_ALL = ("f32", "i32", "bool", "c64")
_WHOLE = ("i32", "u8", "bool")

MAKES: Mapping[str, tuple[Make, ...]] = {
    "input": (lambda build: build.input("x", "f32", (2, 3)),),
    "constant": tuple(_constants()),
    "iota": tuple(_on("iota", axis=axis, to=(2, 1, 3)) for axis in range(3)),
    "rank": tuple(_on("rank", stride=s, size=n) for s, n in ((1, 2), (1, 1), (2, 2), (1, 7), (5, 3))),
    **{
        op: _unary(op, "f32", "i32", "c64")
        for op in ("neg", "square", "exp", "exp2", "sin", "cos", "tanh", "abs")
    },
    **{op: _unary(op, "f32", "c64") for op in ("log", "sqrt", "rsqrt", "reciprocal", "tan")},
    **{
        op: _unary(op, *_F)
        for op in (
            "floor",
            "ceil",
            "round",
            "trunc",
            "sign",
            "relu",
            "expm1",
            "log2",
            "log1p",
            "atan",
            "sigmoid",
            "silu",
            "erf",
            "softplus",
        )
    },
    **{op: _unary(op, "f32") for op in ("is_finite", "is_nan")},
    "not": _unary("not", "i32", "u8", "bool"),
    "gelu": (*_unary("gelu", "f32"), _on("gelu", ("f32", (2, 3)), approximate="tanh")),
    "leaky_relu": (*_unary("leaky_relu", "f32"), _on("leaky_relu", ("f32", (2, 3)), slope=0.3)),
    "cast": tuple(
        _cast(s, t)
        for s in ("f32", "i64", "u8", "i8", "bool", "c64")
        for t in ("f64", "bf16", "i64", "i32", "i8", "u8", "u32", "bool", "c128")
    ),
    "add": (*_pairs("add", *_ALL), *_indices("add"), *_against_number("add", 0.0, 1.0, -2.5)),
    "sub": (*_pairs("sub", "f32", "i32", "c64"), *_indices("sub"), *_against_number("sub", 0.0, 1.0)),
    "mul": (*_pairs("mul", *_ALL), *_indices("mul"), *_against_number("mul", 0.0, 1.0, -1.0, 0.5)),
    "div": (*_pairs("div", *_F, "c64"), *_against_number("div", 1.0, -1.0, 0.5)),
    "pow": (
        *_pairs("pow", "f32"),
        *_against_number("pow", 0.5, -0.5, -1.0, 1.0, 2.0, 3.0, 4.0, 2.5, 0.0),
        _on("pow", ("i64", (2, 3)), ("i64", (3,)), names=("a5", "b4")),
        lambda build: build.add("pow", build.input("x5", "i64", (3,)), build.constant(2, "i64")),
        lambda build: build.add(
            "pow",
            build.add("add", build.input("x4", "i64", (3,)), build.constant(1, "i64")),
            build.constant(-1, "i64"),
        ),
    ),
    **{op: _pairs(op, "f32", "i32", "bool") for op in ("max", "min", "lt", "le", "gt", "ge")},
    **{op: _pairs(op, *_ALL) for op in ("eq", "ne")},
    **{op: _pairs(op, *_WHOLE) for op in ("and", "or", "xor")},
    "atan2": _pairs("atan2", "f32"),
    **{
        op: tuple(_on(op, ("i32", (2, 3)), ("i32", (3,)), names=("a", "n40")) for _ in (0,))
        for op in ("shift_left", "shift_right")
    },
    **{
        op: tuple(_on(op, (dtype, (2, 3)), (dtype, (3,)), names=("a", "positive")) for dtype in ("f32",))
        for op in ("floordiv", "mod", "rem")
    },
    "where": (
        _on("where", ("bool", (2, 3)), ("f32", (3,)), ("f32", ())),
        _on("where", ("bool", ()), ("i32", (2, 1)), ("i32", (3,))),
    ),
    "clamp": (
        _on("clamp", ("f32", ()), ("f32", (2, 3)), ("f32", (3,))),
        _on("clamp", ("i32", ()), ("i32", (3,)), ("i32", ())),
    ),
    "reshape": tuple(
        _on("reshape", ("f32", s), to=t)
        for s, t in (
            ((2, 6), (3, 4)),
            ((2, 6), (12,)),
            ((4, 6), (2, 2, 3, 2)),
            ((1, 2, 1), (2,)),
            ((2, 0), (0, 5)),
            ((3, 4), (4, 3)),
        )
    ),
    "transpose": tuple(
        _on("transpose", ("f32", (2, 3, 4)), perm=p) for p in ((0, 1, 2), (2, 0, 1), (1, 0, 2))
    ),
    "broadcast": tuple(
        _on("broadcast", ("f32", s), to=t, dims=d)
        for s, t, d in (
            ((3,), (2, 3), (1,)),
            ((2, 1), (2, 4, 3), (0, 2)),
            ((), (2, 2), ()),
            ((1,), (5,), (0,)),
        )
    ),
    "slice": tuple(_slices()),
    "concat": (
        *(_on("concat", ("f32", (2, 3)), ("f32", (2, 3)), ("f32", (2, 3)), axis=axis) for axis in (0, 1)),
        _on("concat", ("f32", (2, 0)), ("f32", (2, 3)), axis=1),
        _on("concat", ("f32", (0, 3)), ("f32", (0, 3)), axis=0),
        _on("concat", ("bool", (2,)), ("i32", (3,)), axis=0),
    ),
    "pad": tuple(_pads()),
    "reverse": tuple(_on("reverse", ("f32", (2, 3)), axes=axes) for axes in ((0,), (0, 1), ())),
    "update_slice": tuple(_updates()),
    "dynamic_slice": (
        lambda b: b.add("dynamic_slice", b.input("x", "f32", (4, 5)), *_scalars(b, 4, 5), sizes=(2, 3)),
    ),
    "dynamic_update_slice": (
        lambda b: b.add(
            "dynamic_update_slice",
            b.input("x", "f32", (4, 5)),
            b.input("u", "f32", (2, 3)),
            *_scalars(b, 4, 5),
        ),
    ),
    **{op: tuple(_on(op, ("f32", (2, 3, 4)), k=k) for k in (-2, -1, 0, 1, 5)) for op in ("tril", "triu")},
    "einsum": tuple(_einsums()),
    "conv": tuple(_convolutions()),
    "reduce": tuple(_reductions()),
    **{
        op: tuple(make for keep in (False, True) for make in _by_axis(op, keepdims=keep))
        for op in ("argmax", "argmin")
    },
    **{op: (*_by_axis(op), *_by_axis(op, "bool")) for op in ("cumsum", "cumprod")},
    **{
        op: tuple(make for falling in (False, True) for make in _by_axis(op, descending=falling))
        for op in ("sort", "argsort")
    },
    **{
        op: tuple(make for best in (False, True) for make in _by_axis(op, k=2, largest=best))
        for op in ("topk_values", "topk_indices")
    },
    **{op: _by_axis(op) for op in ("softmax", "log_softmax")},
    "logsumexp": tuple(
        _on("logsumexp", ("f32", (2, 3, 4)), axes=axes, keepdims=keep)
        for axes in ((0,), (2, 1))
        for keep in (False, True)
    ),
    "layer_norm": tuple(_norms("layer_norm")),
    "rms_norm": tuple(_norms("rms_norm")),
    "group_norm": tuple(
        _on("group_norm", ("f32", (2, 4, *tail)), *(("f32", (4,)),) * count, groups=groups, eps=1e-5)
        for tail in ((), (3,), (2, 3))
        for groups in (1, 2, 4)
        for count in range(3)
    ),
    "batch_norm": tuple(
        _on(
            "batch_norm",
            ("f32", (2, 3, 4)),
            ("f32", (3,)),
            ("f32", (3,)),
            *(("f32", (3,)),) * count,
            names=("x", "mean", "positive"),
            eps=1e-5,
        )
        for count in range(3)
    ),
    "attention": tuple(_attentions()),
    "cross_entropy": tuple(
        _on(
            "cross_entropy",
            ("f32", (5, 4)),
            ("i64", (5,)),
            names=("x", "target4"),
            ignore_index=ignored,
            reduction=how,
        )
        for ignored in (-100, 1)
        for how in ("none", "mean", "sum")
    ),
    "interpolate": tuple(
        _on("interpolate", ("f32", (1, 2, 4)), to=(1, 2, 7), mode=mode, align_corners=False, scales=(4 / 7,))
        for mode in ("nearest", "linear")
    ),
    **{op: tuple(_pools(op)) for op in ("max_pool", "avg_pool")},
    "take": tuple(
        _on("take", (dtype, (3, 4, 3)), ("i64", shape), names=("x", "index3"), axis=axis)
        for dtype in ("f32", "bool")
        for axis in range(3)
        for shape in ((), (2,), (2, 2))
    ),
    "take_along": tuple(
        _on("take_along", ("f32", (3, 4, 3)), ("i64", shape), names=("x", "index3"), axis=axis)
        for axis, shape in ((0, (2, 4, 3)), (1, (3, 4, 3)), (2, (3, 4, 5)))
    ),
    "scatter": tuple(_scatters()),
    "index_put": (
        *(
            _on(
                "index_put",
                ("f32", (3, 4)),
                ("f32", src),
                *(("i64", index),) * count,
                names=("x", "src", "i3", "j3"),
                mode=mode,
            )
            for src, index, count in (
                ((2, 4), (2,), 1),
                ((4,), (2,), 1),
                ((2,), (2,), 2),
                ((9, 4), (9,), 1),
                ((2, 5, 4), (2, 5), 1),
                ((3, 3), (3, 3), 2),
            )
            for mode in ("set", "add")
        ),
        *(
            partial(_put_side_by_side, first=first, mode=mode)
            for first in (0, 1, 2)
            for mode in ("set", "add")
        ),
        *(partial(_put_single_into_pieces, mode=mode) for mode in ("set", "add")),
        *(partial(_put_into_pieces, rows=rows, mode=mode) for rows in (2, 9) for mode in ("set", "add")),
    ),
    "one_hot": tuple(
        _on("one_hot", ("i64", shape), names=("i5",), classes=classes)
        for shape in ((), (3,))
        for classes in (1, 4)
    ),
}
