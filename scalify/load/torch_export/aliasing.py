"""Which operators share memory with an argument, write to it, or do nothing that a proof is about."""

from dataclasses import dataclass

from scalify.load.torch_export.program import Call, Ref, ValueName

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

# Views where memory allows, copies elsewhere.
_PERHAPS = frozenset(
    {"reshape", "flatten", "contiguous", "reshape_as", "_reshape_alias", "ravel", "meshgrid"}
)

_PURE_NAMESPACES = frozenset({"aten", "prims", "_c10d_functional"})


@dataclass(frozen=True, slots=True)
class Sharing:
    """A result lies in the memory of ``name``: surely, or perhaps."""

    name: ValueName
    certain: bool


def shares(call: Call, base: str) -> Sharing | None:
    """Whose memory the results of a call lie in, if anybody's."""
    namespace, _, operator = base.partition(".")
    source = next((value for value in call.arguments.values() if isinstance(value, Ref)), None)
    if source is None:
        return None
    if base == "_c10d_functional.wait_tensor":
        return Sharing(source.name, certain=True)
    if namespace != "aten":
        return None
    if operator in _VIEWS:
        return Sharing(source.name, certain=True)
    if operator in _PERHAPS:
        return Sharing(source.name, certain=False)
    if operator in ("to", "type_as"):
        return Sharing(source.name, certain=False)
    return None


def is_pure(target: str) -> bool:
    """Whether an operator without a meaning surely writes nothing: one of PyTorch's own, not in place."""
    namespace, _, rest = target.partition(".")
    operator, _, overload = rest.partition(".")
    in_place = operator.endswith("_") and not operator.endswith("__")
    return namespace in _PURE_NAMESPACES and not in_place and overload != "out"
