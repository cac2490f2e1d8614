"""Whether numbers became too large for double precision while a program was run.

Where that happened, an infinity or NaN says nothing about the program over the reals.
"""

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Node, NodeId

_GROWING = frozenset({
    "exp", "exp2", "expm1", "mul", "add", "sub", "square", "pow", "einsum", "conv", "reduce", "cumsum",
    "cumprod", "all_reduce", "reduce_scatter", "softplus", "tan", "index_put", "scatter",
})  # fmt: skip
"""Ops that make no infinity out of finite numbers unless these are too large (``pow`` also at a pole)."""


class Overflow:
    """Watches a run (``Ways.seen``): ``excuses`` elements without a value once a growing op made infinity out
    of finite numbers.
    """

    def __init__(self) -> None:
        self.excuses = False
        self._unbounded: set[NodeId] = set()

    def seen(self, node: Node, values: PerRank) -> PerRank:
        """Look at a node's value on every rank."""
        if any(value.dtype.kind in "fc" and not np.isfinite(value).all() for value in _distinct(values)):
            self._unbounded.add(node.id)
            if node.op in _GROWING and not any(each in self._unbounded for each in node.operands):
                self.excuses = True
        return values


def _distinct(values: PerRank) -> PerRank:
    return list({id(value): value for value in values}.values())
