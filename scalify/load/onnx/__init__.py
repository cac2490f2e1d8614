"""ONNX models as graphs. See ``translate`` for how, ``weights`` for what becomes an input."""

from scalify.ir.graph import Graph
from scalify.load.onnx.translate import translate
from scalify.load.onnx.wire import read_model

__all__ = ["read"]


def read(data: bytes) -> Graph:
    """The graph of a serialized model."""
    return translate(read_model(data))
