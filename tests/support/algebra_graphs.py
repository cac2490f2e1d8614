"""Random graphs of what normalisation rewrites: quotients, exponentials, masks, look-ups, windows, sums.

Values stay moderate and nothing divides by zero, so that the two ways to compute them can be compared.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import SINGLE, Mesh, RankInt, groups_along

SHAPE = (4, 6)
MESHES = (SINGLE, Mesh(axes=(("tp", 2),)), Mesh(axes=(("dp", 2), ("tp", 2))))


@dataclass
class _Program:
    """Values of SHAPE by what is known of them; positive ones may be divided by, truths are 0 or 1."""

    build: GraphBuilder
    rng: Random
    real: list[NodeId] = field(default_factory=list)
    positive: list[NodeId] = field(default_factory=list)
    truth: list[NodeId] = field(default_factory=list)
    whole: list[NodeId] = field(default_factory=list)

    def any(self) -> NodeId:
        return self.rng.choice((*self.real, *self.positive))

    def number(self) -> NodeId:
        return self.build.constant(self.rng.choice((0.0, 1.0, -1.0, 2.0, 0.5, -0.25)), "f32")

    def integer(self) -> NodeId:
        return self.build.constant(self.rng.choice((0, 1, -1, 2, 3)), "i64")

    def bounded(self, x: NodeId) -> NodeId:
        return self.build.add(self.rng.choice(("tanh", "sin")), x)


Step = Callable[[_Program], None]


def algebra_graph(seed: int, steps: int = 14) -> Graph:
    """A graph of so many steps; every value is kept, the last is the output."""
    rng = Random(seed)
    build = GraphBuilder(f"algebra {seed}", mesh=rng.choice(MESHES))
    p = _Program(build, rng)
    p.real += [build.input("x", "f32", SHAPE), build.input("y", "f32", SHAPE)]
    p.positive.append(build.add("exp", p.bounded(p.real[0])))
    p.whole += [build.input("i6", "i64", SHAPE), build.add("iota", axis=1, shape=SHAPE)]
    for _ in range(steps):
        rng.choice(STEPS)(p)
    build.output("y", build.graph().nodes[-1].id)
    return build.graph()


def _sum(p: _Program) -> None:
    op = p.rng.choice(("add", "sub"))
    p.real.append(p.build.add(op, p.any(), p.rng.choice((p.any(), p.number()))))


def _product(p: _Program) -> None:
    pair = [p.bounded(p.any()), p.rng.choice((p.any(), p.number(), *p.truth))]
    p.rng.shuffle(pair)
    p.real.append(p.build.add("mul", *_as_floats(p, pair)))


def _as_floats(p: _Program, values: list[NodeId]) -> list[NodeId]:
    return [
        value if p.build.type(value).dtype == "f32" else p.build.add("cast", value, dtype="f32")
        for value in values
    ]


def _quotient(p: _Program) -> None:
    below = p.rng.choice(p.positive)
    p.real.append(p.build.add("div", p.any(), below))
    p.positive.append(p.build.add(p.rng.choice(("reciprocal", "sqrt", "rsqrt")), below))


def _power(p: _Program) -> None:
    p.real.append(
        p.build.add("pow", p.bounded(p.any()), p.build.constant(p.rng.choice((1.0, 2.0, 3.0)), "f32"))
    )


def _exponential(p: _Program) -> None:
    shifted = p.build.add("sub", p.bounded(p.any()), p.rng.choice((p.bounded(p.any()), p.number())))
    p.positive.append(p.build.add("exp", shifted))


def _logarithm(p: _Program) -> None:
    p.real.append(p.build.add("log", p.build.add("mul", p.rng.choice(p.positive), p.rng.choice(p.positive))))


def _comparison(p: _Program) -> None:
    op = p.rng.choice(("lt", "le", "gt", "ge", "eq", "ne"))
    pair = [p.rng.choice(p.whole), p.rng.choice((*p.whole, p.integer()))]
    p.rng.shuffle(pair)
    p.truth.append(p.build.add(op, *pair))
    p.truth.append(p.build.add(p.rng.choice(("lt", "le")), p.any(), p.build.constant(0.371, "f32")))


def _logic(p: _Program) -> None:
    if p.truth:
        op = p.rng.choice(("and", "or", "xor", "not", "add", "max", "eq"))
        p.truth.append(p.build.add(op, *(p.rng.choice(p.truth) for _ in range(1 if op == "not" else 2))))


def _of_truth(p: _Program) -> None:
    """A mask that is held as a number, and compared with one."""
    if p.truth:
        mask = p.build.add("cast", p.rng.choice(p.truth), dtype="f32")
        pair = [mask, p.rng.choice((p.number(), p.build.constant(0.5, "f32")))]
        p.rng.shuffle(pair)
        p.truth.append(p.build.add(p.rng.choice(("lt", "le", "gt", "ge", "eq", "ne")), *pair))
        p.truth.append(p.build.add("cast", mask, dtype="bool"))


def _row_by_row(p: _Program) -> None:
    """Every row gets another one added, in a loop over rows."""
    x, y = p.any(), p.any()
    far = p.rng.choice((0, SHAPE[0] - 1))
    for row in range(SHAPE[0]):
        other = abs(far - row) if p.rng.random() < 0.9 else 0
        both = p.build.add("add", _cut(p, x, 0, row, row + 1), _cut(p, y, 0, other, other + 1))
        x = p.build.add("update_slice", x, both, starts=(row, 0))
    p.real.append(x)


def _whole(p: _Program) -> None:
    op = p.rng.choice(("add", "sub", "mul", "sub"))
    p.whole.append(p.build.add(op, p.rng.choice(p.whole), p.rng.choice((*p.whole, p.integer()))))
    digit = p.build.add("rank", stride=1, size=max(1, p.build.mesh.size))
    p.whole.append(p.build.add("add", p.rng.choice(p.whole), p.build.add("mul", digit, p.integer())))


def _choice(p: _Program) -> None:
    if p.truth:
        pair = [p.any(), p.rng.choice((p.any(), p.number()))]
        p.rng.shuffle(pair)
        p.real.append(p.build.add("where", p.rng.choice(p.truth), *pair))


def _masked_softmax(p: _Program) -> None:
    """Exponentials of scores less their maximum, of which a mask leaves at least one out of each row."""
    column = p.build.add("iota", axis=1, shape=SHAPE)
    allowed = p.build.add("le", column, p.build.constant(p.rng.randint(0, 6), "i64"))
    infinite = p.build.constant(float("-inf"), "f32")
    if p.rng.random() < 0.5:
        scores = p.build.add("where", allowed, p.any(), infinite)
    else:
        mask = p.build.add("where", allowed, p.build.constant(0.0, "f32"), infinite)
        scores = p.build.add("add", p.any(), mask)
    p.real.append(p.build.add("softmax", scores, axis=1))
    total = p.build.add("logsumexp", scores, axes=(1,), keepdims=True)
    p.real.append(p.build.add("broadcast", total, dims=(0, 1), shape=SHAPE))


def _normal(p: _Program) -> None:
    p.real.append(p.build.add(p.rng.choice(("layer_norm", "rms_norm")), p.any(), axes=(1,), eps=0.01))


def _folded(p: _Program) -> None:
    axis = p.rng.randint(0, 1)
    kind = p.rng.choice(("sum", "sum", "mean", "max", "min"))
    folded = p.build.add("reduce", p.bounded(p.any()), kind=kind, axes=(axis,), keepdims=True)
    p.real.append(p.build.add("broadcast", folded, dims=(0, 1), shape=SHAPE))


def _windows(p: _Program) -> None:
    """Cut along an axis, worked on apart, and put together again or added up."""
    x, axis = p.any(), p.rng.randint(0, 1)
    cut = p.rng.randint(1, SHAPE[axis] - 1)
    parts = [_cut(p, x, axis, 0, cut), _cut(p, x, axis, cut, SHAPE[axis])]
    if p.rng.random() < 0.5:
        sums = [p.build.add("reduce", part, kind="sum", axes=(axis,), keepdims=True) for part in parts]
        total = p.build.add("add", *sums)
        p.real.append(p.build.add("broadcast", total, dims=(0, 1), shape=SHAPE))
        return
    parts = [p.build.add("tanh", part) for part in parts]
    if p.rng.random() < 0.3:
        parts.reverse()
    p.real.append(p.build.add("concat", *parts, axis=axis))


def _cut(p: _Program, x: NodeId, axis: int, start: int, limit: int) -> NodeId:
    starts = tuple(start if dim == axis else 0 for dim in range(2))
    limits = tuple(limit if dim == axis else size for dim, size in enumerate(SHAPE))
    return p.build.add("slice", x, starts=starts, limits=limits, steps=(1, 1))


def _lookup(p: _Program) -> None:
    """A table read where an index says; or the rows from ``first`` on, where the index is among them."""
    table = p.build.add("reduce", p.any(), kind="sum", axes=(0,), keepdims=False)
    index = p.whole[0]
    if p.rng.random() < 0.4:
        p.real.append(p.build.add("take", table, index, axis=0))
        return
    first = p.rng.randint(0, 3)
    rows = p.rng.randint(1, 6 - first)
    part = p.build.add("slice", table, starts=(first,), limits=(first + rows,), steps=(1,))
    moved = p.build.add("sub", index, p.build.constant(first, "i64"))
    bounds = (p.build.constant(first, "i64"), p.build.constant(first + rows, "i64"))
    inside = p.build.add("and", p.build.add("ge", index, bounds[0]), p.build.add("lt", index, bounds[1]))
    row = p.build.add("mul", moved, p.build.add("cast", inside, dtype="i64"))
    found = p.build.add("take", part, row, axis=0)
    if p.rng.random() < 0.5:
        p.real.append(p.build.add("where", inside, found, p.build.constant(0.0, "f32")))
    else:
        p.real.append(p.build.add("mul", found, p.build.add("cast", inside, dtype="f32")))


def _added_rows(p: _Program) -> None:
    """Rows added where an index says, into those from ``first`` on; what is meant for others adds nothing."""
    first = p.rng.randint(0, 3)
    rows = p.rng.randint(1, 6 - first)
    table = p.build.add("reduce", p.any(), kind="sum", axes=(0,), keepdims=False)
    part = p.build.add("slice", table, starts=(first,), limits=(first + rows,), steps=(1,))
    index = p.whole[0]
    moved = p.build.add("sub", index, p.build.constant(first, "i64"))
    bounds = (p.build.constant(first, "i64"), p.build.constant(first + rows, "i64"))
    inside = p.build.add("and", p.build.add("ge", index, bounds[0]), p.build.add("lt", index, bounds[1]))
    row = p.build.add("mul", moved, p.build.add("cast", inside, dtype="i64"))
    added = p.build.add("mul", p.any(), p.build.add("cast", inside, dtype="f32"))
    p.real.append(p.build.add("take", p.build.add("index_put", part, added, row, mode="add"), row, axis=0))


def _ordering(p: _Program) -> None:
    """The best of functions that keep the order: values and places."""
    x = p.any()
    scaled = p.build.add("mul", p.bounded(x), p.build.constant(p.rng.choice((0.5, 2.0)), "f32"))
    made = p.rng.choice(
        (x, scaled, p.build.add("softmax", p.bounded(x), axis=1), p.build.add("exp", p.bounded(x)))
    )
    op = p.rng.choice(("sort", "topk_values"))
    attrs = {"descending": True} if op == "sort" else {"k": 6, "largest": p.rng.random() < 0.5}
    p.real.append(p.build.add(op, made, axis=1, attrs=attrs))


def _picked(p: _Program) -> None:
    """Of every row, what an index picks, less what the row shares."""
    values, index = p.bounded(p.any()), p.whole[0]
    first = _cut(p, index, 1, 0, 1)
    spread = p.build.add("broadcast", p.build.add("reshape", first, shape=(4,)), dims=(0,), shape=SHAPE)
    hit = p.build.add("cast", p.build.add("eq", spread, p.whole[1]), dtype="f32")
    top = p.build.add("reduce", values, kind="max", axes=(1,), keepdims=True)
    logits = p.build.add("sub", values, top) if p.rng.random() < 0.7 else values
    found = p.build.add("reduce", p.build.add("mul", hit, logits), kind="sum", axes=(1,), keepdims=True)
    p.build.add("take", p.build.add("reduce", values, kind="sum", axes=(0,)), spread, axis=0)
    p.real.append(p.build.add("broadcast", found, dims=(0, 1), shape=SHAPE))


def _collective(p: _Program) -> None:
    mesh = p.build.mesh
    if mesh.size == 1:
        return
    names = tuple(name for name, _ in mesh.axes if p.rng.random() < 0.7) or ("tp",)
    groups = groups_along(mesh, names)
    kind = p.rng.choice(("sum", "sum", "avg", "max", "min"))
    p.real.append(p.build.add("all_reduce", p.bounded(p.any()), kind=kind, groups=groups))
    half = RankInt(base=0, terms=((1, 2, 3),)), RankInt(base=3, terms=((1, 2, 3),))
    shard = p.build.add("slice", p.any(), starts=(0, half[0]), limits=(4, half[1]), steps=(1, 1))
    p.real.append(p.build.add("all_gather", shard, dim=1, groups=groups_along(mesh, ("tp",))))


STEPS: tuple[Step, ...] = (
    *(_ordering, _picked),
    *(_sum, _sum, _product, _product, _quotient, _power, _exponential, _logarithm, _comparison, _comparison),
    *(
        _logic,
        _whole,
        _choice,
        _choice,
        _masked_softmax,
        _of_truth,
        _added_rows,
        _row_by_row,
        _normal,
        _folded,
        _windows,
        _lookup,
        _lookup,
        _collective,
    ),
)
