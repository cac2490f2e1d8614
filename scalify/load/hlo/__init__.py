"""Graphs of XLA and of compilers that speak its HLO: serialized modules and their printed text."""

from scalify.ir.graph import Graph
from scalify.load.hlo.translate import translate
from scalify.load.hlo.wire import read_module

__all__ = ["read_protobuf"]


def read_protobuf(data: bytes) -> Graph:
    """The graph of a serialized HloModuleProto, or of an HloProto around one."""
    return translate(read_module(data))
