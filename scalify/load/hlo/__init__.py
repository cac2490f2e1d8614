"""Graphs of XLA and of compilers that speak its HLO: serialized modules and their printed text.

The package imports nothing; each reader is imported when it is called.
"""

from scalify.ir.graph import Graph

__all__ = ["read_protobuf", "read_text"]


def read_protobuf(data: bytes) -> Graph:
    """The graph of a serialized HloModuleProto, or of an HloProto around one."""
    from scalify.load.hlo.translate import translate
    from scalify.load.hlo.wire import read_module

    return translate(read_module(data))


def read_text(text: str) -> Graph:
    """The graph of a module in printed form."""
    from scalify.load.hlo.text import read_module_text
    from scalify.load.hlo.translate import translate

    return translate(read_module_text(text))
