"""A graph of one device, done by several ranks: mostly right, sometimes with a collective out of place.

Inputs are cut at random, every op is tried on what the ranks hold, and where it cannot work on parts, they
are gathered first. Which of the pairs are equal is for NumPy to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

from scalify_cases import Layout, Pair, replicated, sharded_on

from scalify.errors import InvalidGraph
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.ir.mesh import Mesh, groups_along

MESHES = (Mesh(axes=(("dp", 2),)), Mesh(axes=(("tp", 3),)), Mesh(axes=(("dp", 2), ("tp", 3))))
"""No two ways to choose axes have as many ranks: how often a shape is cut says along which axes."""
LOOKUPS = ("take", "take_along", "scatter", "index_put", "one_hot")
"""Ops whose indices would miss in a part."""
PENDING = {"sum": "sum", "mean": "avg", "max": "max", "min": "min", "prod": "prod"}


class NotSharded(Exception):
    """The ranks hold something that has no counterpart in shape."""


@dataclass
class _Ranks:
    """``values`` are the ranks' by the device's; ``noise`` is how often a collective is out of place."""

    graph: Graph
    rng: Random
    build: GraphBuilder
    noise: float
    values: dict[NodeId, NodeId] = field(default_factory=dict)
    inputs: dict[str, Layout] = field(default_factory=dict)

    def copy(self, node: Node) -> None:
        """Add what the ranks do in the place of a node."""
        made = self._input(node) if node.op == "input" else self._settled(node, self._computed(node))
        self.values[node.id] = self._disturbed(made) if self.rng.random() < self.noise else made

    def _input(self, node: Node) -> NodeId:
        cuts: dict[int, tuple[str, ...]] = {}
        free = [name for name, _ in self.build.mesh.axes]
        for dim in self.rng.sample(range(len(node.type.shape)), len(node.type.shape)):
            axes = tuple(name for name in free if self.rng.random() < 0.6)
            if axes and node.type.shape[dim] % self._ranks(axes) == 0:
                cuts[dim] = axes
                free = [name for name in free if name not in axes]
        local = tuple(size // self._ranks(cuts.get(dim, ())) for dim, size in enumerate(node.type.shape))
        name = str(node.attrs["name"])
        self.inputs[name] = sharded_on(cuts) if cuts else replicated
        return self.build.input(name, node.type.dtype, local)

    def _ranks(self, axes: Sequence[str]) -> int:
        return prod(size for name, size in self.build.mesh.axes if name in axes)

    def _computed(self, node: Node) -> NodeId:
        held = [self.values[operand] for operand in node.operands]
        if node.op not in LOOKUPS and self.rng.random() < 0.8:
            try:
                return self._added(node, held)
            except InvalidGraph:
                pass
        types = self.graph.by_id()
        whole = [
            self.gathered(own, types[operand].type.shape)
            for own, operand in zip(held, node.operands, strict=True)
        ]
        return self._added(node, whole)

    def _added(self, node: Node, operands: Sequence[NodeId]) -> NodeId:
        types = self.graph.by_id()
        is_whole = all(
            self.build.type(own).shape == types[given].type.shape
            for own, given in zip(operands, node.operands, strict=True)
        )
        attrs: dict[str, Attr] = dict(node.attrs)
        if "groups" in attrs:
            attrs["groups"] = tuple((rank,) for rank in range(self.build.mesh.size))
        shape = node.type.shape if is_whole else None
        if node.op == "broadcast":
            shape = self._broadcast(node, self.build.type(operands[0]).shape)
        return self.build.add(node.op, *operands, attrs=attrs, shape=shape, dtype=node.type.dtype)

    def _broadcast(self, node: Node, local: tuple[int, ...]) -> tuple[int, ...]:
        dims = node.attrs["dims"]
        assert isinstance(dims, tuple)
        full = self.graph.by_id()[node.operands[0]].type.shape
        shape = list(node.type.shape)
        for dim, size, whole in zip(dims, local, full, strict=True):
            assert isinstance(dim, int)
            shape[dim] = size if whole == shape[dim] else shape[dim]
        return tuple(shape)

    def axes_between(self, local: int, full: int) -> tuple[str, ...]:
        """The axes along which a size is cut."""
        ratio, odd = divmod(full, local)
        for axes in (
            (),
            *((name,) for name, _ in self.build.mesh.axes),
            tuple(n for n, _ in self.build.mesh.axes),
        ):
            if not odd and ratio == self._ranks(axes):
                return axes
        raise NotSharded

    def gathered(self, value: NodeId, shape: tuple[int, ...]) -> NodeId:
        """A value of the whole shape."""
        local = self.build.type(value).shape
        if len(local) != len(shape):
            raise NotSharded
        for dim, (own, full) in enumerate(zip(local, shape, strict=True)):
            axes = self.axes_between(own, full)
            if axes:
                value = self.build.add(
                    "all_gather", value, dim=dim, groups=groups_along(self.build.mesh, axes)
                )
        return value

    def _settled(self, node: Node, made: NodeId) -> NodeId:
        """What was folded in parts is combined over the ranks that hold them, unless that is forgotten."""
        kind = {"einsum": "sum", "reduce": PENDING.get(str(node.attrs.get("kind")), "")}.get(node.op)
        if not kind or self.rng.random() < self.noise:
            return made
        axes = self._folded_axes(node)
        groups = groups_along(self.build.mesh, axes)
        return self.build.add("all_reduce", made, kind=kind, groups=groups) if axes else made

    def _folded_axes(self, node: Node) -> tuple[str, ...]:
        added = self.build.graph().nodes[-1]
        own = self.build.type(added.operands[0]).shape
        full = self.graph.by_id()[node.operands[0]].type.shape
        if node.op == "reduce":
            folded = node.attrs["axes"]
        else:
            letters, _, result = str(node.attrs["spec"]).partition("->")
            folded = tuple(d for d, letter in enumerate(letters.split(",")[0]) if letter not in result)
        assert isinstance(folded, tuple)
        found = [self.axes_between(own[d], full[d]) for d in folded if isinstance(d, int)]
        return tuple(dict.fromkeys(name for axes in found for name in axes))

    def _disturbed(self, value: NodeId) -> NodeId:
        """A collective where none belongs; sometimes that changes nothing."""
        axis, _ = self.rng.choice(self.build.mesh.axes)
        groups = groups_along(self.build.mesh, (axis,))
        if self.rng.random() < 0.5 or not self.build.type(value).shape:
            kind = self.rng.choice(("sum", "avg", "max"))
            return self.build.add("all_reduce", value, kind=kind, groups=groups)
        dim = self.rng.randrange(len(self.build.type(value).shape))
        apart = self.build.add("all_gather", value, dim=dim, groups=groups)
        return self.build.add("reduce_scatter", apart, kind="avg", dim=dim, groups=groups)


def sharded_pair(graph: Graph, rng: Random, *, noise: float = 0.08) -> Pair:
    """The graph and one for ranks; ``NotSharded`` or ``InvalidGraph`` where the choices lead nowhere."""
    ranks = _Ranks(graph, rng, GraphBuilder("ranks", mesh=rng.choice(MESHES)), noise)
    for node in graph.nodes:
        ranks.copy(node)
    outputs: dict[str, Layout] = {}
    for output in graph.outputs:
        value = ranks.values[output.value]
        outputs[output.name] = _layout(ranks, ranks.build.type(value).shape, graph.by_id()[output.value])
        ranks.build.output(output.name, value)
    return Pair(
        verdict="unknown", baseline=graph, candidate=ranks.build.graph(), inputs=ranks.inputs, outputs=outputs
    )


def _layout(ranks: _Ranks, local: tuple[int, ...], whole: Node) -> Layout:
    if len(local) != len(whole.type.shape):
        raise NotSharded
    sizes = zip(local, whole.type.shape, strict=True)
    cuts: Mapping[int, tuple[str, ...]] = {
        dim: axes for dim, (own, full) in enumerate(sizes) if (axes := ranks.axes_between(own, full))
    }
    return sharded_on(cuts) if cuts else replicated
