"""Parts of a model in JAX, whole and by ``shard_map`` over the axis ``tp``; and how sharded ones go wrong.

Every function is what ``scalify capture benchmarks/scalify_models/jax_parts.py:BUILD`` takes: it returns a
function and the types of its arguments. No device is needed: the mesh is abstract.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax, shard_map
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

RANKS = 4
TOKENS, WIDTH, HIDDEN = 12, 16, 64
HEADS, HEAD_SIZE, VOCABULARY = 8, 4, 32
Built = tuple[Callable[..., Any], tuple[Any, ...]]
Params = dict[str, Any]


def _types(**shapes: tuple[int, ...]) -> Params:
    return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}


X = jax.ShapeDtypeStruct((TOKENS, WIDTH), jnp.float32)
IDS = jax.ShapeDtypeStruct((TOKENS,), jnp.int32)
MLP = _types(up=(WIDTH, HIDDEN), gate=(WIDTH, HIDDEN), down=(HIDDEN, WIDTH))
ATTENTION = _types(
    query=(WIDTH, HEADS * HEAD_SIZE),
    key=(WIDTH, HEADS * HEAD_SIZE),
    value=(WIDTH, HEADS * HEAD_SIZE),
    out=(HEADS * HEAD_SIZE, WIDTH),
)
BLOCK = {**_types(norm1=(WIDTH,), norm2=(WIDTH,)), "attention": ATTENTION, "mlp": MLP}
MODEL = {**_types(table=(VOCABULARY, WIDTH), norm=(WIDTH,)), "blocks": [BLOCK, BLOCK]}

MLP_SPECS = {"up": P(None, "tp"), "gate": P(None, "tp"), "down": P("tp", None)}
ATTENTION_SPECS = {
    "query": P(None, "tp"), "key": P(None, "tp"), "value": P(None, "tp"), "out": P("tp", None),
}  # fmt: skip
BLOCK_SPECS = {"norm1": P(), "norm2": P(), "attention": ATTENTION_SPECS, "mlp": MLP_SPECS}
MODEL_SPECS = {"table": P("tp", None), "norm": P(), "blocks": [BLOCK_SPECS, BLOCK_SPECS]}


def mlp_local(params: Params, x: Array) -> Array:
    """A gated perceptron, or a rank's part of one before the sum."""
    return (jax.nn.silu(x @ params["gate"]) * (x @ params["up"])) @ params["down"]


def heads_of(x: Array, weight: Array) -> Array:
    """[tokens, width] to [heads, tokens, size]: as many heads as the weight holds."""
    return (x @ weight).reshape(x.shape[0], -1, HEAD_SIZE).transpose(1, 0, 2)


def scaled(scores: Array) -> Array:
    """Scores over the root of a head's size."""
    return scores * HEAD_SIZE**-0.5


def attention_local(params: Params, x: Array, scale: Callable[[Array], Array] = scaled) -> Array:
    """Causal attention of the heads that the weights hold, before the sum over ranks."""
    query, key, value = (heads_of(x, params[name]) for name in ("query", "key", "value"))
    query, key = rotated(query), rotated(key)
    scores = scale(jnp.einsum("htd,hsd->hts", query, key))
    mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("hts,hsd->htd", weights, value)
    return mixed.transpose(1, 0, 2).reshape(x.shape[0], -1) @ params["out"]


def sharded(function: Callable[..., Any], in_specs: Any, *, ranks: int = RANKS) -> Any:
    """The function on every rank of ``tp``. With ``check_vma`` JAX itself would find some of the mistakes."""
    mesh = AbstractMesh((ranks,), ("tp",))
    return shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=P(), check_vma=False)


def mlp() -> Built:
    """The perceptron on one device."""
    return mlp_local, (MLP, X)


def mlp_tp() -> Built:
    """Columns, then rows."""

    def local(params: Params, x: Array) -> Array:
        return lax.psum(mlp_local(params, x), "tp")

    return sharded(local, (MLP_SPECS, P())), (MLP, X)


def mlp_tp_unsummed() -> Built:
    """Wrong: the sum over ranks is missing."""

    def local(params: Params, x: Array) -> Array:
        return mlp_local(params, x)

    return sharded(local, (MLP_SPECS, P())), (MLP, X)


def mlp_tp_averaged() -> Built:
    """Wrong: the mean over ranks in place of the sum."""

    def local(params: Params, x: Array) -> Array:
        return lax.pmean(mlp_local(params, x), "tp")

    return sharded(local, (MLP_SPECS, P())), (MLP, X)


def attention() -> Built:
    """Attention on one device."""
    return attention_local, (ATTENTION, X)


def attention_tp() -> Built:
    """Each rank has some of the heads."""

    def local(params: Params, x: Array) -> Array:
        return lax.psum(attention_local(params, x), "tp")

    return sharded(local, (ATTENTION_SPECS, P())), (ATTENTION, X)


def attention_tp_scaled_by_local_width() -> Built:
    """Wrong: scores are divided by the root of the rank's own width, not of a head's size."""

    def local(params: Params, x: Array) -> Array:
        def by_local_width(scores: Array) -> Array:
            return scores * params["query"].shape[1] ** -0.5

        return lax.psum(attention_local(params, x, by_local_width), "tp")

    return sharded(local, (ATTENTION_SPECS, P())), (ATTENTION, X)


def attention_tp_first_heads() -> Built:
    """Wrong: the weights are whole, and every rank takes the first heads of the value."""

    def local(params: Params, x: Array) -> Array:
        width = HEADS * HEAD_SIZE // RANKS
        start = lax.axis_index("tp") * width
        own = {
            "query": lax.dynamic_slice_in_dim(params["query"], start, width, 1),
            "key": lax.dynamic_slice_in_dim(params["key"], start, width, 1),
            "value": lax.dynamic_slice_in_dim(params["value"], 0, width, 1),
            "out": lax.dynamic_slice_in_dim(params["out"], start, width, 0),
        }
        return lax.psum(attention_local(own, x), "tp")

    return sharded(local, (P(), P())), (ATTENTION, X)


def attention_tp_own_heads() -> Built:
    """Right: the weights are whole, and every rank takes its heads."""

    def local(params: Params, x: Array) -> Array:
        width = HEADS * HEAD_SIZE // RANKS
        start = lax.axis_index("tp") * width
        own = {
            name: lax.dynamic_slice_in_dim(weight, start, width, 0 if name == "out" else 1)
            for name, weight in params.items()
        }
        return lax.psum(attention_local(own, x), "tp")

    return sharded(local, (P(), P())), (ATTENTION, X)


def mlp_gradient() -> Built:
    """The perceptron's gradients, of a loss that is one number."""

    def loss(params: Params, x: Array) -> Array:
        return jnp.sum(jnp.square(mlp_local(params, x)))

    return jax.grad(loss), (MLP, X)


def mlp_tp_gradient() -> Built:
    """Gradients through shard_map: of each rank's weights, by that rank."""
    function, _ = mlp_tp()

    def loss(params: Params, x: Array) -> Array:
        return jnp.sum(jnp.square(function(params, x)))

    return jax.grad(loss), (MLP, X)


def rms_norm(x: Array, weight: Array) -> Array:
    """Root mean square normalisation over the last dimension."""
    return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6) * weight


def rotated(x: Array) -> Array:
    """Rotary embedding of [heads, tokens, size], halves paired."""
    half = HEAD_SIZE // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def block_local(params: Params, x: Array, summed: Callable[[Array], Array]) -> Array:
    """A decoder's block; ``summed`` adds what ranks have in part."""
    x = x + summed(attention_local(params["attention"], rms_norm(x, params["norm1"])))
    return x + summed(mlp_local(params["mlp"], rms_norm(x, params["norm2"])))


def looked_up(table: Array, ids: Array) -> Array:
    """Rows of a table. Negative numbers do not count from its end: a rank's part of it has another end."""
    return table.at[ids].get(mode="promise_in_bounds", wrap_negative_indices=False)


def model() -> Built:
    """Two blocks between a table and the logits of it."""

    def whole(params: Params, ids: Array) -> Array:
        x = looked_up(params["table"], ids)
        for block in params["blocks"]:
            x = block_local(block, x, lambda part: part)
        return rms_norm(x, params["norm"]) @ params["table"].T

    return whole, (MODEL, IDS)


def model_tp() -> Built:
    """The table is cut by rows: foreign tokens are looked up as none, and logits stay with their rank."""

    def over_ranks(part: Array) -> Array:
        return lax.psum(part, "tp")

    def local(params: Params, ids: Array) -> Array:
        rows = VOCABULARY // RANKS
        place = ids - lax.axis_index("tp") * rows
        owned = (place >= 0) & (place < rows)
        rows_of_own = looked_up(params["table"], jnp.where(owned, place, 0))
        x = over_ranks(jnp.where(owned[:, None], rows_of_own, 0.0))
        for block in params["blocks"]:
            x = block_local(block, x, over_ranks)
        return rms_norm(x, params["norm"]) @ params["table"].T

    mesh = AbstractMesh((RANKS,), ("tp",))
    in_specs, out_specs = (MODEL_SPECS, P()), P(None, "tp")
    function = shard_map(local, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    return function, (MODEL, IDS)
