"""A run in which every element carries a mark that says whether it can be relied on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import DType, Graph, Node, NodeId
from scalify.ir.ops import OPS
from scalify.ir.ops.spec import Array, Call
from scalify.refute.constants import with_infinity
from scalify.refute.doubt.jumps import Jumps
from scalify.refute.doubt.passing import passed, passed_on
from scalify.refute.doubt.sources import own, valueless, vanished
from scalify.refute.doubt.watch import watching
from scalify.refute.pair import Given
from scalify.refute.run import run
from scalify.refute.unknown import is_unwritten
from scalify.verdict import Draw

PerRankMarks = list[Array | None]
Doubts = Mapping[str, PerRankMarks]
"""By output, the doubtful elements on every rank; None where there are none."""


def doubts(
    graph: Graph,
    given: Given,
    draw: Draw,
    jumps: Jumps,
    *,
    garbage: bool,
    valueless: bool = True,
    infinite: frozenset[NodeId] = frozenset(),
) -> Doubts:
    """The outputs' doubtful elements on one draw.

    ``garbage`` says that unwritten memory may hold anything. With ``valueless``, what has no value is
    doubtful; without, what is too small for double precision, and may lack a value only for that.
    The nodes named ``infinite`` are constants that mask: they become infinite here, and rows of which nothing
    is left lose their value.
    """
    marked = _Marked(graph, jumps, garbage=garbage, valueless=valueless, infinite=infinite)
    run(graph, given, draw, watching(graph, marked.look))
    return {output.name: marked.marks[output.value] for output in graph.outputs}


class _Marked:
    def __init__(
        self, graph: Graph, jumps: Jumps, *, garbage: bool, valueless: bool, infinite: frozenset[NodeId]
    ) -> None:
        self.marks: dict[NodeId, PerRankMarks] = {}
        self._nodes = graph.by_id()
        self._mesh = graph.mesh
        self._jumps = jumps
        self._garbage = garbage
        self._valueless = valueless
        self._infinite = infinite

    def look(self, node: Node, values: PerRank, operands: Sequence[PerRank]) -> PerRank:
        if node.id in self._infinite:
            made = {id(each): with_infinity(each) for each in values}
            values = [made[id(each)] for each in values]
        if self._infinite and node.op == "mul" and values[0].dtype.kind == "f":
            values = _times(values, *operands)
        self.marks[node.id] = self._own(node, values, operands, self._passed(node, values, operands))
        return values

    def _passed(self, node: Node, values: PerRank, operands: Sequence[PerRank]) -> PerRankMarks:
        given = [self.marks[operand] for operand in node.operands]
        if all(mark is None for marks in given for mark in marks):
            return [None] * len(values)
        filled = [_filled(marks, arrays) for marks, arrays in zip(given, operands, strict=True)]
        call = self._call(node)
        if OPS[node.op].across is not None:
            return list(passed_on(call, filled[0]))
        found: PerRankMarks = []
        for rank, value in enumerate(values):
            own_call = replace(call, rank=rank)
            marks = [each[rank] for each in filled]
            mark = passed(own_call, marks, [each[rank] for each in operands], value)
            found.append(mark if mark.any() else None)
        return found

    def _own(
        self, node: Node, values: PerRank, operands: Sequence[PerRank], found: PerRankMarks
    ) -> PerRankMarks:
        near = self._jumps.near(node)
        dtypes: list[DType] = [self._nodes[operand].type.dtype for operand in node.operands]
        done: dict[int, tuple[Array | None, ...]] = {}
        result: PerRankMarks = []
        for rank, value in enumerate(values):
            more: list[Array | None] = [found[rank], None if near is None else near[rank]]
            if self._garbage and is_unwritten(node):
                more.append(np.ones(value.shape, dtype=np.bool_))
            if id(value) not in done:
                done[id(value)] = self._of(node, dtypes, [each[rank] for each in operands], value)
            more.extend(done[id(value)])
            marks = [each for each in more if each is not None and each.any()]
            result.append(np.logical_or.reduce(marks) if marks else None)
        return result

    def _of(
        self, node: Node, dtypes: Sequence[DType], operands: Sequence[Array], value: Array
    ) -> tuple[Array | None, ...]:
        found = own(node, dtypes, operands, value)
        return found, (valueless if self._valueless else vanished)(node, operands, value)

    def _call(self, node: Node) -> Call:
        return Call(
            op=node.op,
            operands=tuple(self._nodes[operand].type for operand in node.operands),
            attrs=node.attrs,
            mesh=self._mesh,
            declared=node.type,
        )


def _filled(marks: PerRankMarks, values: PerRank) -> PerRank:
    return [
        np.zeros(value.shape, dtype=np.bool_) if mark is None else mark
        for mark, value in zip(marks, values, strict=True)
    ]


def _times(values: PerRank, one: PerRank, other: PerRank) -> PerRank:
    """Zero times infinity is zero: a mask that is multiplied masks only where it is one."""
    return [
        np.where((left == 0) | (right == 0), 0.0, value)
        if np.isnan(value).any() and (np.isinf(left).any() or np.isinf(right).any())
        else value
        for value, left, right in zip(values, one, other, strict=True)
    ]
