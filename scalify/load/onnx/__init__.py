"""ONNX models as graphs. See ``translate`` for how, ``weights`` for what becomes an input."""

from collections.abc import Mapping
from types import MappingProxyType

from scalify.ir.graph import Graph
from scalify.load.onnx.model import Array
from scalify.load.onnx.translate import translate
from scalify.load.onnx.wire import read_model

__all__ = ["read"]


def read(data: bytes, weights: Mapping[str, Array] = MappingProxyType({})) -> Graph:
    """The graph of a serialized model. ``weights`` are values by names, for weights without their names."""
    return translate(read_model(data), weights)
