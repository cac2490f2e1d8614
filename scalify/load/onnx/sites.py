"""Where a node stands in the source and in the model, from what torch's exporter keeps beside it.

Its newer exporter writes a traceback and the names of the modules around; of its older one, and of others,
only the node's name says something: ``/layers.0/attn/q_proj/MatMul``.
"""

import ast
from functools import lru_cache

from scalify.ir.graph import Site
from scalify.load.onnx.model import OnnxNode
from scalify.load.torch_export.sites import frames

STACK = "pkg.torch.onnx.stack_trace"
SCOPES = "pkg.torch.onnx.name_scopes"
LONGEST = 20_000


def stack_of(node: OnnxNode) -> tuple[Site, ...]:
    """The user's frames, outermost first."""
    return frames(node.metadata.get(STACK, "")[:LONGEST])


def scope_of(node: OnnxNode) -> str:
    """The path of the innermost module."""
    if SCOPES in node.metadata:
        names = _names(node.metadata[SCOPES][:LONGEST])
        return names[-2] if len(names) > 1 else ""
    path, slash, _ = node.name.rpartition("/")
    return ".".join(part for part in path.split("/") if part) if slash else ""


@lru_cache(maxsize=20_000)
def _names(text: str) -> tuple[str, ...]:
    """A list of texts as Python writes it; of anything else, nothing."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(str(name) for name in value) if isinstance(value, list) else ()
