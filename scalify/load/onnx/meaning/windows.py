"""Convolutions, pooling and resizing, over x [N, C, *S]."""

from types import MappingProxyType

from scalify.ir.graph import Attr, TensorType
from scalify.load.onnx.meaning.elementwise import applied
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.torch_export.emit import Wire


def _padding(op: Operation, rank: int) -> tuple[tuple[int, int], ...]:
    """All first widths come before all last ones."""
    automatic = op.text("auto_pad", "NOTSET")
    if automatic == "VALID":
        return ((0, 0),) * rank
    if automatic != "NOTSET":
        raise Unmodelled("padding by the size of the result")
    pads = op.integers("pads", (0,) * (2 * rank))
    if len(pads) != 2 * rank:
        raise damaged(f"{op.what} has {len(pads)} widths of padding for {rank} dimensions")
    return tuple(zip(pads[:rank], pads[rank:], strict=True))


def _conv(op: Operation) -> Wire:
    wire, weight = op.tensor(0), op.tensor(1)
    rank = len(weight.shape) - 2
    if rank < 1:
        raise damaged(f"{op.what} has a kernel of {len(weight.shape)} dimensions")
    if op.integers("kernel_shape", weight.shape[2:]) != weight.shape[2:]:
        raise damaged(f"{op.what} has a kernel of {list(weight.shape)} and says otherwise")
    attrs: dict[str, Attr] = {
        "strides": op.integers("strides", (1,) * rank),
        "padding": _padding(op, rank),
        "dilation": op.integers("dilations", (1,) * rank),
        "groups": op.integer("group", 1),
    }
    made = op.emit.elementwise("conv", wire, weight, dtype=wire.dtype, attrs=attrs)
    if not op.has(2):
        return made
    bias = op.tensor(2)
    return applied(op, "add", made, op.emit.reshape(bias, (*bias.shape, *(1 for _ in range(rank)))))


def _window(op: Operation) -> dict[str, Attr]:
    kernel = op.integers("kernel_shape")
    if op.integer("ceil_mode", 0) or op.integer("storage_order", 0):
        raise Unmodelled("windows that stick out")
    return {
        "kernel": kernel,
        "strides": op.integers("strides", (1,) * len(kernel)),
        "padding": _padding(op, len(kernel)),
    }


def _max_pool(op: Operation) -> Wire:
    if op.result_of(1):
        raise Unmodelled("where the greatest were")
    attrs = _window(op)
    attrs["dilation"] = op.integers("dilations", (1,) * len(op.integers("kernel_shape")))
    return op.emit.emit("max_pool", op.tensor(), attrs=attrs)


def _average_pool(op: Operation) -> Wire:
    if set(op.integers("dilations", (1,))) != {1}:
        raise Unmodelled("windows with gaps")
    attrs = {**_window(op), "count_padding": bool(op.integer("count_include_pad", 0))}
    return op.emit.emit("avg_pool", op.tensor(), attrs=attrs)


def _global(kind: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        wire = op.tensor()
        return op.emit.reduce(kind, wire, range(2, len(wire.shape)), True, wire.dtype)

    return meaning


def _resize(op: Operation) -> Wire:
    """In the two ways that the IR has, of spatial dimensions alone."""
    wire = op.tensor()
    rank = len(wire.shape)
    if op.given("axes") or op.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unmodelled("a resize of some dimensions")
    if op.integer("antialias", 0) or op.integer("exclude_outside", 0):
        raise Unmodelled("a resize that filters")
    if op.has(3):
        sizes = op.known_integers(3)
        ratios = tuple(size / max(own, 1) for own, size in zip(wire.shape, sizes, strict=False))
    else:
        ratios = tuple(float(ratio) for ratio in op.known(2).reshape(-1))
        sizes = tuple(int(own * ratio) for own, ratio in zip(wire.shape, ratios, strict=False))
    if not len(sizes) == len(ratios) == rank or rank < 3 or min(sizes) < 1 or min(ratios) <= 0:
        raise damaged(f"{op.what} resizes {list(wire.shape)} to {list(sizes)}")
    if sizes[:2] != wire.shape[:2]:
        raise Unmodelled("a resize of batch or channels")
    attrs = _sampling(op, wire.shape[2:], sizes[2:], ratios[2:])
    return op.emit.emit("interpolate", wire, declared=TensorType(wire.dtype, sizes), attrs=attrs)


def _sampling(
    op: Operation, own: tuple[int, ...], sizes: tuple[int, ...], ratios: tuple[float, ...]
) -> dict[str, Attr]:
    mode = op.text("mode", "nearest")
    way = op.text("coordinate_transformation_mode", "half_pixel")
    if way == "pytorch_half_pixel" and min(sizes) > 1:
        way = "half_pixel"
    scales = tuple(1 / ratio for ratio in ratios)
    if mode == "nearest" and way == "asymmetric" and op.text("nearest_mode", "round_prefer_floor") == "floor":
        return {"mode": "nearest", "align_corners": False, "scales": scales}
    if mode == "linear" and way == "half_pixel":
        return {"mode": "linear", "align_corners": False, "scales": scales}
    if mode == "linear" and way == "align_corners" and min(sizes) > 1:
        corners = tuple((size - 1) / (result - 1) for size, result in zip(own, sizes, strict=True))
        return {"mode": "linear", "align_corners": True, "scales": corners}
    raise Unmodelled(f"a resize of mode {mode}, {way}")


WINDOWS: Meanings = MappingProxyType({
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
    "Resize": _resize,
})  # fmt: skip
