"""MLIR's types and attributes as the records of HLO have them."""

import re
from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.load.hlo.literals import STORAGE, stored_bytes
from scalify.load.hlo.program import ConvDims, DotDims, GatherDims, Shape
from scalify.load.hlo.shapes import checked_dims

_ELEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "i1": "pred", "i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64", "ui8": "u8", "ui16": "u16",
        "ui32": "u32", "ui64": "u64", "f16": "f16", "f32": "f32", "f64": "f64", "bf16": "bf16",
        "complex<f32>": "c64", "complex<f64>": "c128", "f8E5M2": "f8e5m2", "f8E4M3FN": "f8e4m3fn",
    }
)  # fmt: skip
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([^x,]+)(?:, .*)?>")
_NUMBER = re.compile(r"[-+.\w]+")
_NUMPY_READS = frozenset({"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"})


def shape_of(type: Any) -> Shape:
    """The type of a value that is one array of fixed sizes."""
    text = str(type)
    found = _TENSOR.fullmatch(text)
    element = _ELEMENTS.get(found.group(2)) if found else None
    if found is None or element is None:
        raise UnsupportedFormat(
            f"a value has the type {text[:80]}, which scalify does not read",
            hint="lower for fixed shapes; element types are numbers of 8 bits or more",
        )
    dims = tuple(int(size) for size in found.group(1).split("x") if size)
    return Shape(element, checked_dims(dims, text[:80]))


def constant_bytes(attribute: Any, shape: Shape) -> bytes:
    """A constant's elements as HLO stores them; one, where all are equal."""
    if attribute.is_splat:
        return _printed(str(attribute), Shape(shape.element))
    if shape.element in _NUMPY_READS:
        return np.asarray(attribute).astype(STORAGE[shape.element]).tobytes()
    if shape.element == "pred":
        return np.asarray(attribute).astype(np.bool_).tobytes()
    return _printed(str(attribute), shape)


def _printed(text: str, shape: Shape) -> bytes:
    """From ``dense<[1.5, 0x7FC0]> : tensor<...>``; what has no decimal is in hex, and all of a large one."""
    body = text[text.index("<") + 1 : text.rindex("> : ")]
    size = np.dtype(STORAGE[shape.element]).itemsize
    if body.startswith('"0x'):
        data = bytes.fromhex(body[3:-1])
    else:
        data = b"".join(_element(word, shape.element, size) for word in _NUMBER.findall(body))
    if len(data) != size * prod(shape.dims):
        raise InvalidGraph(
            "a constant has not as many elements as its type says", hint="write the file again"
        )
    return data


def _element(word: str, element: str, size: int) -> bytes:
    if word.startswith("0x"):
        return int(word, 16).to_bytes(size, "little")
    return stored_bytes([word], element)


def rows(attribute: Any) -> tuple[tuple[int, ...], ...]:
    """A dense table of integers."""
    table = np.asarray(attribute)
    if table.ndim != 2:
        raise InvalidGraph(f"{str(attribute)[:80]} is no table", hint="write the file again")
    return tuple(tuple(int(number) for number in row) for row in table)


def dot_dims(attribute: Any) -> DotDims:
    """``dot_dimension_numbers``."""
    from jaxlib.mlir.dialects import stablehlo

    dims = stablehlo.DotDimensionNumbers(attribute)
    return DotDims(
        tuple(dims.lhs_contracting_dimensions),
        tuple(dims.rhs_contracting_dimensions),
        tuple(dims.lhs_batching_dimensions),
        tuple(dims.rhs_batching_dimensions),
    )


def gather_dims(attribute: Any) -> GatherDims:
    """``dimension_numbers`` of a gather."""
    from jaxlib.mlir.dialects import stablehlo

    dims = stablehlo.GatherDimensionNumbers(attribute)
    return GatherDims(
        offset=tuple(dims.offset_dims),
        collapsed=tuple(dims.collapsed_slice_dims),
        start_map=tuple(dims.start_index_map),
        index_vector=int(dims.index_vector_dim),
        operand_batch=tuple(dims.operand_batching_dims),
        indices_batch=tuple(dims.start_indices_batching_dims),
    )


def scatter_dims(attribute: Any) -> GatherDims:
    """``scatter_dimension_numbers``."""
    from jaxlib.mlir.dialects import stablehlo

    dims = stablehlo.ScatterDimensionNumbers(attribute)
    return GatherDims(
        offset=tuple(dims.update_window_dims),
        collapsed=tuple(dims.inserted_window_dims),
        start_map=tuple(dims.scattered_dims_to_operand_dims),
        index_vector=int(dims.index_vector_dim),
        operand_batch=tuple(dims.input_batching_dims),
        indices_batch=tuple(dims.scatter_indices_batching_dims),
    )


def conv_dims(attribute: Any) -> ConvDims:
    """``dimension_numbers`` of a convolution."""
    from jaxlib.mlir.dialects import stablehlo

    dims = stablehlo.ConvDimensionNumbers(attribute)
    return ConvDims(
        int(dims.input_batch_dimension),
        int(dims.input_feature_dimension),
        tuple(dims.input_spatial_dimensions),
        int(dims.kernel_input_feature_dimension),
        int(dims.kernel_output_feature_dimension),
        tuple(dims.kernel_spatial_dimensions),
        int(dims.output_batch_dimension),
        int(dims.output_feature_dimension),
        tuple(dims.output_spatial_dimensions),
    )
