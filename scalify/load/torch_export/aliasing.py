"""Which operators share memory with an argument, write to it, or do nothing that a proof is about."""

import re
from enum import Enum

from scalify.load.torch_export.program import Call, Value

# Checks and markers: their results are not used, they change nothing.
IGNORED = frozenset({
    "aten._assert_tensor_metadata.default", "aten._assert_async.msg", "aten._assert_async.default",
    "aten._assert_scalar.default", "aten.sym_constrain_range.default", "aten._functional_assert_async.msg",
    "aten.sym_constrain_range_for_size.default", "aten.sym_size.int", "aten.record_stream.default",
})  # fmt: skip

# Blocks that change how gradients or casts are done, not what is computed.
INLINED = frozenset({
    "higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast",
    "higher_order.tag_activation_checkpoint", "higher_order.wrap_activation_checkpoint",
})  # fmt: skip

_VIEWS = frozenset({
    "view", "expand", "expand_as", "broadcast_to", "permute", "transpose", "swapaxes", "swapdims", "t",
    "numpy_T", "mT", "movedim", "moveaxis", "slice", "narrow", "select", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "unsqueeze", "squeeze", "detach", "alias", "lift_fresh", "view_as", "diagonal",
    "unfold", "unflatten", "dropout", "feature_dropout",
})  # fmt: skip

# Views of what lies row-major, copies of what does not, mostly.
_PERHAPS = frozenset(
    {"reshape", "flatten", "reshape_as", "_reshape_alias", "ravel", "einsum", "atleast_1d", "atleast_2d"}
)

# The first result is a view of the first tensor, the second of the second.
PIECEWISE = frozenset({"aten.broadcast_tensors", "aten.meshgrid"})

# Said to be functional: what is received is in the tensor that they are given.
RECEIVES = frozenset({"_c10d_functional.irecv.default"})

# In place, but of where a tensor's elements stand: what it is called afterwards is a view of it.
RESHAPED = frozenset(
    f"aten.{name}_.{overload}"
    for name in ("squeeze", "unsqueeze", "transpose", "swapaxes", "swapdims", "t")
    for overload in ("default", "dim", "dims")
)

# Normalisations that keep statistics, and the argument that says so.
UPDATES_STATISTICS = {
    "aten.batch_norm.default": "training",
    "aten.native_batch_norm.default": "training",
    "aten.instance_norm.default": "use_input_stats",
}

_DRAWS = re.compile(r"dropout|rand|bernoulli|multinomial|normal|uniform|exponential|poisson|sample|attention")

_PURE_NAMESPACES = frozenset({"aten", "prims", "_c10d_functional"})


class Sharing(Enum):
    """A result lies in the memory of an argument."""

    SURE = "surely"
    PERHAPS = "perhaps"


def shares(call: Call, base: str, source: Value) -> Sharing | None:
    """Whether the results of a call lie in the memory of its first tensor, ``source``."""
    namespace, _, operator = base.partition(".")
    if base == "_c10d_functional.wait_tensor" or (namespace == "aten" and operator in _VIEWS):
        return Sharing.SURE
    if namespace != "aten":
        return None
    if base in PIECEWISE:
        return Sharing.PERHAPS
    if operator in _PERHAPS:
        return Sharing.SURE if source.contiguous else Sharing.PERHAPS
    if operator == "contiguous":
        return _contiguous(call, source)
    return _cast(call, source) if operator in ("to", "type_as") else None


def _contiguous(call: Call, source: Value) -> Sharing | None:
    if call.arguments.get("memory_format") is not None:
        return Sharing.PERHAPS
    return Sharing.SURE if source.contiguous else None


def _cast(call: Call, source: Value) -> Sharing | None:
    """``to`` copies if it has to: to another type surely, to another device too, which is not known here."""
    result = call.results[0] if call.results else None
    if result is None or result.type.dtype != source.type.dtype or call.arguments.get("copy") is True:
        return None
    return Sharing.SURE if call.target == "aten.to.dtype" else Sharing.PERHAPS


def draws(target: str) -> bool:
    """Whether an operator without a meaning may draw random numbers: then no two uses of it are equal.

    Attention is one where its dropout was what it has no meaning for.
    """
    return bool(_DRAWS.search(target.partition(".")[2]))


def is_pure(target: str) -> bool:
    """Whether an operator without a meaning surely writes nothing: one of PyTorch's own, not in place."""
    namespace, _, rest = target.partition(".")
    operator, _, overload = rest.partition(".")
    in_place = operator.endswith("_") and not operator.endswith("__")
    return namespace in _PURE_NAMESPACES and not in_place and overload != "out"
