"""Small functions of JAX with arguments, and their values: by JAX, and by their graphs in NumPy.

Whoever imports this has four devices on the CPU and float64.
"""

# pyright: reportUnknownLambdaType=false
# What JAX is given are lambdas; JAX itself says nothing of their types.

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from numpy.typing import NDArray

from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 4)

Array = NDArray[Any]
Function = Callable[..., Any]
Case = tuple[Function, tuple[Array, ...]]
_RNG = np.random.default_rng(7)


def reals(*shape: int) -> Array:
    """Random numbers that are not round."""
    return _RNG.standard_normal(shape)


def wholes(high: int, *shape: int, low: int = 0) -> Array:
    """Random integers."""
    return _RNG.integers(low, high, shape)


X, Y, V, W = reals(4, 6), reals(4, 6), reals(6), reals(6, 5)
POSITIVE = np.abs(X) + 0.1
N, M = wholes(9, 4, 6, low=-9), wholes(5, 4, 6, low=1)
T, U = reals(4, 6) > 0, reals(4, 6) > 0
IMAGE, KERNEL = reals(2, 3, 8, 8), reals(4, 3, 3, 3)
ROWS = wholes(4, 5)
PLACES = wholes(6, 4, 2)

UNARY = (
    "neg", "abs", "exp", "exp2", "expm1", "sin", "cos", "tan", "tanh", "atan", "erf", "erfc", "logistic",
    "floor", "ceil", "sign", "is_finite", "square",
)  # fmt: skip
OF_POSITIVE = ("log", "log1p", "sqrt", "rsqrt")
BINARY = ("add", "sub", "mul", "div", "max", "min", "atan2", "eq", "ne", "lt", "le", "gt", "ge")


def _loop(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda step, carry: carry + jnp.sin(carry) * step, x)


def _counted(x: Any) -> Any:
    return lax.while_loop(lambda carry: carry[0] < 5, lambda carry: (carry[0] + 2, carry[1] * 1.5), (0, x))[1]


def _scan(x: Any) -> Any:
    return lax.scan(lambda carry, row: (carry + row, carry * row), x[0], x, reverse=True)


def _loss(x: Any, w: Any) -> Any:
    return jnp.sum(jax.nn.softmax(jnp.tanh(x @ w), axis=-1) ** 2 * jnp.arange(5.0))


@jax.custom_jvp
def _custom(x: Any) -> Any:
    return jnp.sin(x)


_custom.defjvp(lambda primals, tangents: (_custom(*primals), 2.0 * tangents[0]))  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]


CASES: Mapping[str, Case] = {
    **{name: (getattr(lax, name), (X,)) for name in UNARY if hasattr(lax, name)},
    **{name: (getattr(lax, name), (POSITIVE,)) for name in OF_POSITIVE},
    **{name: (getattr(lax, name), (X, Y)) for name in BINARY},
    "half_to_even": (lambda x: lax.round(x * 2, lax.RoundingMethod.TO_NEAREST_EVEN), (X,)),
    "pow": (lax.pow, (POSITIVE, Y)),
    "integer_pow": (lambda x: (x**3, x**-2, x**2, x**0), (X,)),
    "whole_division": (lambda n, m: (lax.div(n, m), lax.rem(n, m), n // m, n % m), (N, M)),
    "whole_arithmetic": (lambda n, m: (n + m, n * m, -n, jnp.abs(n), n << 1, n >> 1, n & m, ~n), (N, M)),
    "logic": (lambda t, u: (t & u, t | u, t ^ u, ~t), (T, U)),
    "where": (lambda t, x, y: jnp.where(t, x, y), (T, X, Y)),
    "select_n": (lambda n, x, y: lax.select_n(jnp.abs(n) % 3, x, y, x + y), (N, X, Y)),
    "clamp": (lambda x: lax.clamp(-0.5, x, 0.5), (X,)),
    "convert": (lambda x, n, t: (x.astype(int), n.astype(float), t.astype(int), n > 0), (X, N, T)),
    "reshape": (lambda x: (x.reshape(3, 8), x.ravel(), x[None], x.reshape(4, 6, 1).squeeze(-1)), (X,)),
    "transpose": (lambda x: x.reshape(2, 2, 6).transpose(2, 0, 1), (X,)),
    "broadcast": (lambda v: (jnp.broadcast_to(v, (4, 6)), v[:, None] + v), (V,)),
    "slice": (lambda x: (x[1:3, ::2], x[-1], lax.slice(x, (0, 1), (4, 5), (2, 3))), (X,)),
    "split": (lambda x: jnp.split(x, 3, axis=1), (X,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), (X, Y)),
    "stack": (lambda x, y: (jnp.stack([x, y], 1), jnp.unstack(x, axis=1)[2]), (X, Y)),
    "pad": (lambda x: lax.pad(x, 2.0, ((1, 2, 1), (-1, 0, 0))), (X,)),
    "reverse": (lambda x: x[::-1, ::-1], (X,)),
    "tile": (lambda x: jnp.tile(x, (2, 3)), (X,)),
    "roll": (lambda x: jnp.roll(x, 2, axis=1), (X,)),
    "tril": (lambda x: (jnp.tril(x), jnp.triu(x, 1)), (X,)),
    "iota": (lambda v: v + lax.broadcasted_iota(float, (4, 6), 0) + jnp.arange(6.0), (V,)),
    "dynamic_slice": (lambda x, n: lax.dynamic_slice(x, (jnp.abs(n[0, 0]) % 4, 1), (2, 3)), (X, N)),
    "dynamic_update": (lambda x: lax.dynamic_update_slice(x, jnp.zeros((2, 2)), (1, 3)), (X,)),
    "dot": (lambda x, w: (x @ w, jnp.einsum("ij,kj->ik", x, x), jnp.einsum("ij,ij->i", x, x)), (X, W)),
    "batched": (lambda x: jnp.einsum("bij,bkj->bki", x.reshape(2, 2, 6), x.reshape(2, 2, 6)), (X,)),
    "conv": (
        lambda x, k: lax.conv_general_dilated(x, k, (2, 1), ((1, 0), (1, 1)), (1, 1), (2, 1)),
        (IMAGE, KERNEL),
    ),
    "conv_channels_last": (
        lambda x, k: lax.conv_general_dilated(
            x.transpose(0, 2, 3, 1),
            k.transpose(2, 3, 1, 0),
            (1, 1),
            "SAME",
            rhs_dilation=(2, 2),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        (IMAGE, KERNEL),
    ),
    "reduce": (lambda x: (x.sum(), x.sum(0), x.mean(1), x.max(1), x.min((0, 1)), x.prod(1)), (X,)),
    "reduce_whole": (lambda n, t: (n.max(1), n.min(0), n.sum(), t.all(1), t.any(0)), (N, T)),
    "var": (lambda x: (x.var(1), jax.nn.standardize(x), jnp.linalg.norm(x)), (X,)),
    "cumsum": (lambda x: (x.cumsum(1), x.cumprod(0), lax.cumsum(x, 1, reverse=True)), (X,)),
    "argmax": (lambda x, n: (x.argmax(1), x.argmin(0), n.argmax(1)), (X, N)),
    "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1), jnp.sort(x, 0)), (X,)),
    "top_k": (lambda x: lax.top_k(x, 3), (X,)),
    "take": (lambda x, i: (x[i], jnp.take(x, i, axis=0), jnp.take(x, i, axis=1)), (X, ROWS)),
    "take_along": (lambda x, i: jnp.take_along_axis(x, i, 1), (X, PLACES)),
    "put": (lambda x, i: (x.at[i[0]].set(9.0), x.at[i].add(2.0)), (X, ROWS)),
    "put_columns": (lambda x, i: x.at[:, i].add(2.0), (X, ROWS)),
    "gradient_of_take": (lambda x, i: jax.grad(lambda t: (t[i] ** 2).sum())(x), (X, ROWS)),
    "gradient_of_take_along": (
        lambda x, i: jax.grad(lambda t: (jnp.take_along_axis(t, i, 1) ** 2).sum())(x),
        (X, wholes(6, 4, 1)),
    ),
    "one_hot": (lambda i: jax.nn.one_hot(i, 6), (ROWS,)),
    "softmax": (lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x), jax.nn.logsumexp(x, 1)), (X,)),
    "activations": (lambda x: (jax.nn.relu(x), jax.nn.gelu(x), jax.nn.silu(x), jax.nn.elu(x)), (X,)),
    "gelu_exact": (lambda x: jax.nn.gelu(x, approximate=False), (X,)),
    "loop": (_loop, (X,)),
    "counted": (_counted, (X,)),
    "scan": (_scan, (X,)),
    "cond": (lambda n, x: lax.cond(n[0, 0] > 0, jnp.sin, jnp.cos, x), (N, X)),
    "switch": (lambda n, x: lax.switch(n[0, 0], [jnp.sin, jnp.cos, jnp.tanh], x), (N, X)),
    "gradient": (jax.grad(_loss, argnums=(0, 1)), (X, W)),
    "checkpoint": (jax.grad(jax.checkpoint(_loss)), (X, W)),
    "custom_jvp": (lambda x: (_custom(x), jax.grad(lambda t: _custom(t).sum())(x)), (X,)),
    "closed_over": (lambda x: x + jnp.asarray(Y) + 0.25, (X,)),
    "vmapped": (jax.vmap(lambda row, other: jnp.dot(row, other)), (X, Y)),
}


def mesh() -> Mesh:
    """Two axes of two ranks each."""
    return Mesh(np.array(jax.devices()).reshape(2, 2), ("dp", "tp"))


def on_ranks(function: Function, in_specs: Any, out_specs: Any) -> Function:
    """A function by shard_map."""
    return shard_map(function, mesh=mesh(), in_specs=in_specs, out_specs=out_specs, check_vma=False)


_ALL, _ROWS, _BOTH = P(), P("dp"), P(("dp", "tp"))
A, B = reals(8, 12), reals(12, 8)


def _own_rows(b: Any) -> Any:
    return lax.dynamic_slice_in_dim(b, lax.axis_index("tp") * 6, 6, 0)


def _ring(x: Any) -> Any:
    total = x
    for _ in range(3):
        x = lax.ppermute(x, ("dp", "tp"), [(place, (place + 1) % 4) for place in range(4)])
        total = total + x
    return total


SHARDED: Mapping[str, tuple[Function, tuple[Array, ...], Any, Any]] = {
    "psum": (lambda x: lax.psum(x, "tp"), (A,), P(None, "tp"), _ALL),
    "psum_of_both": (lambda x: lax.psum(x.sum(), ("dp", "tp")), (A,), _BOTH, _ALL),
    "psum_in_groups": (
        lambda x: lax.psum(x, "tp", axis_index_groups=[[0], [1]]), (A,), P(None, "tp"), P(None, "tp"),
    ),
    "pmean": (lambda x: lax.pmean(x, "dp"), (A,), _BOTH, P("tp")),
    "pmax": (lambda x: (lax.pmax(x, "dp"), lax.pmin(x, "tp")), (A,), _BOTH, (P("tp"), _ROWS)),
    "all_gather": (lambda x: lax.all_gather(x, "tp", axis=1, tiled=True), (A,), P("dp", "tp"), _ROWS),
    "all_gather_stacked": (lambda x: lax.all_gather(x, "tp", axis=1), (A,), P("dp", "tp"), _ROWS),
    "all_gather_of_both": (
        lambda x: lax.all_gather(x, ("tp", "dp"), tiled=True), (A,), _BOTH, _ALL,
    ),
    "reduce_scatter": (lambda x: lax.psum_scatter(x, "tp", tiled=True), (A,), _ROWS, _BOTH),
    "reduce_scatter_rows": (lambda x: lax.psum_scatter(x[:2], "tp"), (A,), _ROWS, P(("dp", "tp"))),
    "all_to_all": (lambda x: lax.all_to_all(x, "tp", 1, 0, tiled=True), (A,), _BOTH, P("dp", "tp")),
    "all_to_all_untiled": (
        lambda x: lax.all_to_all(x.reshape(2, 6, 2), "tp", 2, 1), (A,), _BOTH, _BOTH,
    ),
    "ppermute": (lambda x: lax.ppermute(x, "tp", [(0, 1)]), (A,), _BOTH, _BOTH),
    "ring": (_ring, (A,), _BOTH, _BOTH),
    "axis_index": (lambda x: x * (lax.axis_index("tp") + 10 * lax.axis_index("dp")), (A,), _BOTH, _BOTH),
    "own_rows": (lambda x, b: lax.psum(x @ _own_rows(b), "tp"), (A, B), (P("dp", "tp"), _ALL), _ROWS),
    "scan_with_psum": (
        lambda x: lax.scan(lambda c, row: (c + lax.psum(row, "tp"), c), jnp.zeros(12), x),
        (A,), _ROWS, (P("dp"), _ROWS),
    ),
    "gradient": (
        jax.grad(lambda x: (lax.psum(jnp.sin(x), "tp") ** 2).sum()), (A,), P("dp", "tp"), P("dp", "tp"),
    ),
}  # fmt: skip


def values_of(graph: Graph, args: tuple[Any, ...]) -> list[Array]:
    """The graph's outputs on every rank, stacked; inputs by their order."""
    check(graph)
    names = [str(node.attrs["name"]) for node in graph.inputs()]
    given = dict(zip(names, map(np.asarray, args), strict=True))
    return [np.stack(by_rank) for by_rank in evaluate(graph, given).values()]


def agree(found: list[Array], wanted: Any) -> None:
    """Fail unless every rank has JAX's own values."""
    leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(wanted)]
    assert len(found) == len(leaves)
    for one, other in zip(found, leaves, strict=True):
        assert one.shape[1:] == other.shape
        assert (one.dtype.kind == "b") == (other.dtype.kind == "b")
        np.testing.assert_allclose(one, np.broadcast_to(other, one.shape), rtol=1e-9, atol=1e-12)
