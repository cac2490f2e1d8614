"""How much arithmetic and how much memory traffic does an operator need? Counted from shapes.

FLOPs: a contraction counts a multiplication and an addition per pair of elements (PyTorch's own
formulas, ours where it has none); an elementwise operator one per output element, whatever the function;
anything else that computes one per element of its largest input; views, allocations and copies none.

Bytes: what is distinct is read once and written once. An expanded tensor counts the memory behind it, a
gather only the rows it uses, a scatter only what it writes. Caches and padding are not modelled.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from torch import Tensor
from torch.utils.flop_counter import flop_registry

from magneton.profile.model import Effect
from magneton.record.torch.calls import Call, tensors_in
from magneton.record.torch.internals import storage_identity, tensor_identity
from magneton.record.torch.storage import geometry_of, has_storage, region_of

Flops = Callable[[Mapping[str, Any]], int]


def _vector(given: Mapping[str, Any]) -> int:
    """mv [N, K] [K], dot [K] [K]: all elements of the first operand."""
    return 2 * given.get("mat", given["self"]).numel()


def _matrix(given: Mapping[str, Any]) -> int:
    """[..., N, K] times [..., K, M]."""
    first: Tensor = given.get("mat1", given["self"])
    return 2 * first.numel() * given["mat2"].shape[-1]


def _packed(given: Mapping[str, Any]) -> int:
    """A packed weight shows its output width only in its scales or in the result."""
    return 2 * given["self"].numel() * given["mat2"].shape[0]


def _batches(given: Mapping[str, Any]) -> int:
    return 2 * given["batch1"].numel() * given["batch2"].shape[-1]


def _attention(given: Mapping[str, Any]) -> int:
    """Scores and context: q [..., T, D], k [..., S, D], v [..., S, E]."""
    q, k, v = given["query"], given["key"], given["value"]
    rows = prod(q.shape[:-1])
    return 2 * rows * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _linear(given: Mapping[str, Any]) -> int:
    weight: Tensor = given["weight"]
    return 2 * given.get("input", given.get("self")).numel() * weight.shape[0]


def _onednn(given: Mapping[str, Any]) -> int:
    """c [M, N] from a [M, K] and a packed weight."""
    return 2 * given["c"].numel() * given["a"].shape[-1]


def _paged_attention(given: Mapping[str, Any]) -> int:
    """q [T, heads, D], sequences one after the other, each with its own length in the cache."""
    q: Tensor = given["query"]
    spans = zip(pairwise(given["query_start_loc"].tolist()), given["seq_lens"].tolist(), strict=False)
    pairs = sum((end - start) * length for (start, end), length in spans)
    return 4 * pairs * q.shape[-2] * q.shape[-1]


# Contractions that torch.utils.flop_counter does not know, by the name in the schema.
_CONTRACTIONS: Mapping[str, Flops] = {
    "aten::dot": _vector,
    "aten::vdot": _vector,
    "aten::mv": _vector,
    "aten::addmv": _vector,
    "aten::addmv_": _vector,
    "aten::_int_mm": _matrix,
    "aten::_addmm_activation": _matrix,
    "aten::addmm_": _matrix,
    "aten::baddbmm_": _batches,
    "aten::addbmm": _batches,
    "aten::addbmm_": _batches,
    "aten::_weight_int8pack_mm": _packed,
    "aten::linear": _linear,
    "aten::mkldnn_linear": _linear,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_fused_attention_overrideable": _attention,
    "_C::onednn_mm": _onednn,
    "_C::cpu_attention_with_kv_cache": _paged_attention,
}

_MOVING = frozenset(
    f"aten::{name}"
    for name in (
        "clone",
        "copy_",
        "copy",
        "_copy_from",
        "_foreach_copy_",
        "_to_copy",
        "_reshape_copy",
        "contiguous",
        "cat",
        "_cat",
        "stack",
        "index",
        "index_select",
        "gather",
        "take",
        "embedding",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "index_copy",
        "index_copy_",
        "scatter",
        "scatter_",
        "masked_scatter",
        "masked_scatter_",
        "masked_select",
        "slice_scatter",
        "select_scatter",
        "slice_backward",
        "select_backward",
        "as_strided_scatter",
        "constant_pad_nd",
        "repeat",
        "roll",
        "flip",
        "rot90",
        "tril",
        "triu",
        "tril_",
        "triu_",
        "zeros",
        "zeros_like",
        "new_zeros",
        "ones",
        "ones_like",
        "new_ones",
        "full",
        "full_like",
        "new_full",
        "scalar_tensor",
        "fill_",
        "fill",
        "zero_",
        "zero",
        "_foreach_zero_",
        "eye",
        "nonzero",
        "_local_scalar_dense",
        "split_with_sizes_copy",
        "pixel_shuffle",
        "channel_shuffle",
    )
)

# The tensor that is only read where the indices point.
_GATHERING: Mapping[str, str] = {
    "aten::embedding": "weight",
    "aten::_embedding_bag": "weight",
    "aten::_embedding_bag_forward_only": "weight",
    "aten::index": "self",
    "aten::index_select": "self",
    "aten::gather": "self",
    "aten::take": "self",
}
# The tensor of which only the given elements are written, and the argument that holds these.
_SCATTERING: Mapping[str, tuple[str, str]] = {
    "aten::index_put_": ("self", "values"),
    "aten::_index_put_impl_": ("self", "values"),
    "aten::index_copy_": ("self", "source"),
    "aten::index_add_": ("self", "source"),
    "aten::scatter_": ("self", "src"),
    "aten::scatter_add_": ("self", "src"),
    "aten::masked_scatter_": ("self", "source"),
}


def count_flops(
    func: Any, call: Call, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, effect: Effect
) -> int:
    """Floating-point operations of one call, from the shapes of what went in and came out."""
    name = call.signature.name
    if effect in ("view", "alloc") or name in _MOVING:
        return 0
    known = flop_registry.get(getattr(func, "overloadpacket", None))
    if known is not None:
        return int(known(*args, **kwargs, out_val=result))
    ours = _CONTRACTIONS.get(name)
    if ours is not None:
        return ours(call.given)
    results = tuple(tensors_in(result)) or call.written
    made = sum(t.numel() for t in results)
    if call.signature.pointwise:
        return made
    return max([made if not call.tensors else 0, *(t.numel() for t in call.tensors)])


def count_bytes(call: Call, results: Sequence[Tensor], effect: Effect) -> int:
    """Distinct bytes that one call reads and writes."""
    if effect in ("view", "alloc"):
        return 0
    fresh = [t for t in results if not any(t is w for w in call.written)]
    return _read_bytes(call, fresh) + _written_bytes(call) + _distinct_bytes(fresh)


def _read_bytes(call: Call, made: Sequence[Tensor]) -> int:
    gathered = call.given.get(_GATHERING.get(call.signature.name, ""))
    scattered = call.given.get(_SCATTERING.get(call.signature.name, ("", ""))[0])
    whole = [
        tensor
        for place, tensor in enumerate(call.tensors)
        if place not in call.unread and tensor is not gathered and tensor is not scattered
    ]
    rows = 0
    if gathered is not None:
        rows = min(_distinct_bytes([gathered]), sum(t.numel() for t in made) * gathered.element_size())
    return _distinct_bytes(whole) + rows


def _written_bytes(call: Call) -> int:
    target, source = _SCATTERING.get(call.signature.name, ("", ""))
    given = call.given.get(source)
    if isinstance(given, Tensor):
        written = _scattered_elements(call, given) * given.element_size()
        return min(_distinct_bytes([call.given[target]]), written)
    return _distinct_bytes(call.written)


def _scattered_elements(call: Call, given: Tensor) -> int:
    """A single value may be written to many places."""
    if given.numel() != 1 or "indices" not in call.given:
        return given.numel()
    return max((t.numel() for t in tensors_in(call.given["indices"])), default=1)


def _distinct_bytes(tensors: Sequence[Tensor]) -> int:
    """The same bytes given twice count once; partly overlapping tensors count in full."""
    counted: dict[object, int] = {}
    for tensor in tensors:
        if has_storage(tensor):
            geometry = geometry_of(tensor)
            where = (storage_identity(tensor), geometry.offset, geometry.shape, geometry.stride)
            counted[where] = region_of(geometry).size_bytes
        else:
            counted[tensor_identity(tensor)] = tensor.numel() * tensor.element_size()
    return sum(counted.values())
