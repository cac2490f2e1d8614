"""Pairs of small graphs with a known verdict: how they are written, run in NumPy and verified.

A case is a file below ``tests/scalify/cases/proved`` or ``unknown`` that holds one ``PAIR``: two graphs, how
the candidate's inputs lie in the baseline's, and how its outputs must. The lines that a verdict should blame
end in the comment ``# suspect``. Uneven shards, and stages that run different programs, are written out on
one device: each rank's work side by side, collectives as sums and concatenations.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from math import prod
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scalify.errors import ScalifyError
from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, Site
from scalify.ir.mesh import Groups, Mesh, RankInt, groups_along
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.digits import Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along, identity
from scalify.relate.model import InputRelation, OutputRelation, Part, Relations

FOLDER = Path(__file__).parents[1] / "scalify" / "cases"
MARK = "# suspect"

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, Shape], Array]


class Program(GraphBuilder):
    """A graph written by hand: numbers may stand for constants, and sites are the case's own lines.

    Collectives act over all axes of the mesh where none are named.
    """

    def __init__(self, **axes: int) -> None:
        super().__init__("case", mesh=Mesh(axes=tuple(axes.items())))

    def add(
        self,
        op: str,
        *operands: NodeId | float,
        dtype: DType | None = None,
        shape: tuple[int, ...] | None = None,
        id: str | None = None,
        site: Site | None = None,
        stack: tuple[Site, ...] = (),
        scope: str | None = None,
        attrs: Mapping[str, Attr] = MappingProxyType({}),
        **more_attrs: Attr,
    ) -> NodeId:
        """As GraphBuilder does; a number is a constant of the kind of the first operand that is a node."""
        whole = any(isinstance(x, str) and KIND_OF[self.type(x).dtype] == "int" for x in operands)
        values = [x if isinstance(x, str) else self.constant(x, "i64" if whole else "f32") for x in operands]
        site = site or _line_of_case()
        return super().add(
            op,
            *values,
            dtype=dtype,
            shape=shape,
            id=id,
            site=site,
            stack=stack,
            scope=scope,
            attrs=attrs,
            **more_attrs,
        )

    def product(self, spec: str, *operands: NodeId) -> NodeId:
        """An einsum."""
        return self.add("einsum", *operands, spec=spec)

    def total(self, x: NodeId, *axes: int, keepdims: bool = False) -> NodeId:
        """The sum over axes."""
        return self.add("reduce", x, kind="sum", axes=axes, keepdims=keepdims)

    def mean(self, x: NodeId, *axes: int, keepdims: bool = False) -> NodeId:
        """The mean over axes."""
        return self.add("reduce", x, kind="mean", axes=axes, keepdims=keepdims)

    def most(self, x: NodeId, *axes: int, keepdims: bool = False) -> NodeId:
        """The maximum over axes."""
        return self.add("reduce", x, kind="max", axes=axes, keepdims=keepdims)

    def over_ranks(self, x: NodeId, *axes: str, kind: str = "sum") -> NodeId:
        """An all-reduce."""
        return self.add("all_reduce", x, kind=kind, groups=self.groups(*axes))

    def gathered(self, x: NodeId, dim: int, *axes: str) -> NodeId:
        """An all-gather."""
        return self.add("all_gather", x, dim=dim, groups=self.groups(*axes))

    def scattered(self, x: NodeId, dim: int, *axes: str, kind: str = "sum") -> NodeId:
        """A reduce-scatter."""
        return self.add("reduce_scatter", x, kind=kind, dim=dim, groups=self.groups(*axes))

    def exchanged(self, x: NodeId, split: int, concat: int, *axes: str) -> NodeId:
        """An all-to-all."""
        return self.add("all_to_all", x, split_dim=split, concat_dim=concat, groups=self.groups(*axes))

    def cut(self, x: NodeId, dim: int, start: int | RankInt, size: int) -> NodeId:
        """``size`` elements along one dimension."""
        shape = self.type(x).shape
        stop = start + size if isinstance(start, int) else replace(start, base=start.base + size)
        return self.add(
            "slice",
            x,
            starts=tuple(start if d == dim else 0 for d in range(len(shape))),
            limits=tuple(stop if d == dim else n for d, n in enumerate(shape)),
            steps=(1,) * len(shape),
        )

    def own_piece(self, x: NodeId, dim: int) -> NodeId:
        """The rank's part of a dimension that is cut into as many parts as there are ranks."""
        size = self.type(x).shape[dim] // self.mesh.size
        return self.cut(x, dim, RankInt(base=0, terms=((1, self.mesh.size, size),)), size)

    def joined(self, dim: int, *pieces: NodeId) -> NodeId:
        """A concatenation."""
        return self.add("concat", *pieces, axis=dim)

    def shaped(self, x: NodeId, *shape: int) -> NodeId:
        """A reshape."""
        return self.add("reshape", x, shape=shape)

    def turned(self, x: NodeId, *perm: int) -> NodeId:
        """A transposition."""
        return self.add("transpose", x, perm=perm)

    def counter(self, axis: int, *shape: int) -> NodeId:
        """The index along an axis."""
        return self.add("iota", axis=axis, shape=shape, dtype="i64")

    def place_on(self, axis: str) -> NodeId:
        """The rank's coordinate on an axis of the mesh."""
        (found,) = (placed for placed in self.mesh.placed() if placed.name == axis)
        return self.add("rank", stride=found.stride, size=found.size)

    def groups(self, *axes: str) -> Groups:
        """Groups over the named axes, or over all."""
        return groups_along(self.mesh, axes or tuple(name for name, _ in self.mesh.axes))


def _line_of_case() -> Site:
    frame = inspect.currentframe()
    own = (__file__, inspect.getfile(GraphBuilder))
    while frame is not None and frame.f_code.co_filename in own:
        frame = frame.f_back
    if frame is None:
        raise AssertionError("a program is written by somebody")
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


MapOf = Callable[[Mesh, Shape, Shape], IndexMap]
"""From the mesh, the shape on one rank and the baseline's shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How what a rank holds lies in the baseline's tensor: in parts along ``axis``, mostly one.

    ``of`` is the baseline's name where the candidate uses another.
    """

    text: str
    maps: tuple[MapOf, ...]
    axis: int = 0
    of: str | None = None


def sharded(dim: int, *axes: str, of: str | None = None) -> Layout:
    """A dimension is cut along axes of the mesh, the first slowest; along all, where none are named."""
    return Layout(text=f"dimension {dim} sharded", maps=(_sharding({dim: axes}, 0),), of=of)


def sharded_on(by: Mapping[int, tuple[str, ...]]) -> Layout:
    """Several dimensions are cut, each along axes of its own."""
    return Layout(text=f"dimensions {', '.join(map(str, by))} sharded", maps=(_sharding(by, 0),))


def fused(dim: int, *sizes: int) -> Layout:
    """Parts of these sizes follow each other along a dimension, and each is sharded by itself."""
    starts = [sum(sizes[:position]) for position in range(len(sizes))]

    def part(start: int, size: int) -> MapOf:
        def make(mesh: Mesh, local: Shape, full: Shape) -> IndexMap:
            own = tuple(size // mesh.size if d == dim else n for d, n in enumerate(local))
            return _sharding({dim: ()}, start)(mesh, own, full)

        return make

    parts = tuple(part(start, size) for start, size in zip(starts, sizes, strict=True))
    return Layout(text=f"dimension {dim} fused of {len(sizes)} parts, each sharded", maps=parts, axis=dim)


def reordered(dim: int, *digits: tuple[int, int, int]) -> Layout:
    """Along a dimension, index ``j`` is the baseline's ``sum(factor * (j // stride % size))``."""

    def make(mesh: Mesh, local: Shape, full: Shape) -> IndexMap:
        plain = _sharding({}, 0)(mesh, local, full)
        place = summed(0, [Term(dim + 1, stride, size, factor) for stride, size, factor in digits])
        coordinates = [place if d == dim + 1 else expr for d, expr in enumerate(plain.coordinates)]
        return replace(plain, coordinates=tuple(coordinates))

    return Layout(text=f"dimension {dim} in another order", maps=(make,))


def replicated_of(name: str) -> Layout:
    """Every rank holds all of a baseline's input of another name."""
    return Layout(text="replicated", maps=(_sharding({}, 0),), of=name)


def _sharding(by: Mapping[int, tuple[str, ...]], start: int) -> MapOf:
    def make(mesh: Mesh, local: Shape, full: Shape) -> IndexMap:
        coordinates = [Expr(0, ())]
        for dim, size in enumerate(local):
            place = along(dim + 1, size)
            if dim in by:
                place = summed(start, [*place.terms, *_position(mesh, by[dim], size)])
            coordinates.append(place)
        return IndexMap((mesh.size, *local), (1, *full), tuple(coordinates))

    return make


def _position(mesh: Mesh, axes: tuple[str, ...], factor: int) -> list[Term]:
    placed = {axis.name: axis for axis in mesh.placed()}
    terms: list[Term] = []
    for name in reversed(axes or tuple(placed)):
        axis = placed[name]
        terms.append(Term(0, axis.stride, axis.size, factor))
        factor *= axis.size
    return terms


replicated = Layout(text="replicated", maps=(_sharding({}, 0),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two graphs, what is assumed of their inputs, what is asked of their outputs, and the right verdict.

    ``agreeing`` names outputs that are right in a pair that is wrong. ``declared`` marks pairs that are equal
    over the reals and differ only in what their declared types can hold.
    """

    verdict: Literal["proved", "unknown"]
    baseline: Graph
    candidate: Graph
    inputs: Mapping[str, Layout]
    outputs: Mapping[str, Layout]
    draws: Mapping[str, Draw] = field(default_factory=lambda: MappingProxyType({}))
    agreeing: tuple[str, ...] = ()
    declared: bool = False

    def relations(self) -> Relations:
        """What a verification is told. Outputs whose shapes cannot correspond are undecided."""
        given = {str(node.attrs["name"]): node for node in self.baseline.inputs()}
        inputs = [self._input(node, given) for node in self.candidate.inputs()]
        outputs = [(name, self._output(name)) for name in self.outputs]
        return Relations(
            inputs=tuple(inputs),
            outputs=tuple(
                OutputRelation(baseline=name, candidate=name, choices=((self.outputs[name].text, index),))
                for name, index in outputs
                if index is not None
            ),
            undecided={
                f"output {name}": "the shapes cannot correspond" for name, index in outputs if index is None
            },
        )

    def _input(self, node: Node, given: Mapping[str, Node]) -> InputRelation:
        layout = self.inputs[str(node.attrs["name"])]
        source = given[layout.of or str(node.attrs["name"])]
        maps = [make(self.candidate.mesh, node.type.shape, source.type.shape) for make in layout.maps]
        parts = tuple(Part(baseline=source.id, index=index) for index in maps)
        return InputRelation(candidate=node.id, parts=parts, axis=layout.axis, text=layout.text)

    def _output(self, name: str) -> IndexMap | None:
        local, full = (_output_node(graph, name).type.shape for graph in (self.candidate, self.baseline))
        index = self.outputs[name].maps[0](self.candidate.mesh, local, full)
        return index if _is_total(index) else None

    def differing(self) -> tuple[str, ...]:
        """The outputs whose values differ, where the inputs are laid out as the relations say."""
        relations = self.relations()
        baseline, candidate = self.run(relations)
        maps = {relation.candidate: relation.choices[0][1] for relation in relations.outputs}
        return (
            *(name.removeprefix("output ") for name in relations.undecided),
            *(name for name, index in maps.items()
              if not _close(np.stack(candidate[name]), read_through(index, np.stack(baseline[name])))),
        )  # fmt: skip

    def is_finite(self) -> bool:
        """Whether both graphs can be run, and give finite numbers only."""
        try:
            results = self.run(self.relations())
        except ScalifyError:
            return False
        return all(np.isfinite(value).all() for outputs in results for value in outputs.values())

    def run(self, relations: Relations, seed: int = 0) -> tuple[Mapping[str, Sequence[Array]], ...]:
        """Both graphs' outputs on random inputs."""
        rng = np.random.default_rng(seed)
        baseline, candidate = runnable(self.baseline), runnable(self.candidate)
        values = {node.id: self._draw(rng, node) for node in baseline.inputs()}
        own = {node.id: [self._draw(rng, node)] * candidate.mesh.size for node in candidate.inputs()}
        for relation in relations.inputs:
            pieces = [read_through(part.index, values[part.baseline][None]) for part in relation.parts]
            own[relation.candidate] = list(np.concatenate(pieces, axis=relation.axis + 1)
                                           if len(pieces) > 1 else pieces[0])  # fmt: skip
        return (
            evaluate(baseline, _by_name(baseline, values), declared=self.declared),
            evaluate(candidate, _by_name(candidate, own), declared=self.declared),
        )

    def _draw(self, rng: np.random.Generator, node: Node) -> Array:
        draw = self.draws.get(str(node.attrs["name"]), _plain(node.type.dtype))
        return draw(rng, node.type.shape)


def _by_name(graph: Graph, values: Mapping[NodeId, Any]) -> dict[str, Any]:
    return {str(node.attrs["name"]): values[node.id] for node in graph.inputs()}


def _output_node(graph: Graph, name: str) -> Node:
    (value,) = (output.value for output in graph.outputs if output.name == name)
    return graph.by_id()[value]


def _is_total(index: IndexMap) -> bool:
    """Whether every element of the baseline's tensor is read, and nothing beside it."""
    places = np.unique(np.stack(_places(index)).reshape(len(index.codomain), -1), axis=1)
    within = all(places[dim].max() < size for dim, size in enumerate(index.codomain))
    return within and places.shape[1] == prod(index.codomain)


def _places(index: IndexMap) -> list[Array]:
    grid = np.indices(index.domain)
    places: list[Array] = []
    for expr in index.coordinates:
        place = np.full(index.domain, expr.offset)
        for dim, stride, size, factor in expr.terms:
            place = place + factor * (grid[dim] // stride % size)
        places.append(place)
    return places


def read_through(index: IndexMap, array: Array) -> Array:
    """The elements of an array of the map's codomain that each element of its domain reads."""
    return array[tuple(_places(index))]


def _close(one: Array, other: Array) -> bool:
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise AssertionError("a case computes finite numbers")
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-9, atol=1e-9))


def runnable(graph: Graph) -> Graph:
    """A graph in which what has no meaning is an input: some numbers, of which nothing is known."""
    return replace(graph, nodes=tuple(_without_unknown(node) for node in graph.nodes))


def _without_unknown(node: Node) -> Node:
    if node.op not in ("opaque", "random"):
        return node
    attrs: Mapping[str, Attr] = MappingProxyType({"name": f"some.{node.id}", "role": "input"})
    return replace(node, op="input", operands=(), attrs=attrs)


def _plain(dtype: DType) -> Draw:
    def draw(rng: np.random.Generator, shape: Shape) -> Array:
        kind = KIND_OF[dtype]
        values = rng.standard_normal(shape) if kind == "float" else rng.integers(0, 2, shape)
        return values > 0 if kind == "bool" else values

    return draw


def below(limit: int) -> Draw:
    """Whole numbers 0 .. limit-1."""
    return lambda rng, shape: rng.integers(0, limit, shape)


def exactly(*numbers: int) -> Draw:
    """These numbers."""
    return lambda rng, shape: np.array(numbers).reshape(shape)


def positive(rng: np.random.Generator, shape: Shape) -> Array:
    """Numbers between 1 and 3."""
    return rng.uniform(1, 3, shape)


def distinct(limit: int) -> Draw:
    """Different whole numbers below a limit."""
    return lambda rng, shape: rng.permutation(limit)[: prod(shape)].reshape(shape)


def with_itself(graph: Graph) -> Relations:
    """The relations under which a graph is compared with itself."""
    size = graph.mesh.size
    return Relations(
        inputs=tuple(
            InputRelation(
                candidate=node.id,
                parts=(Part(baseline=node.id, index=identity((size, *node.type.shape))),),
                text="the same",
            )
            for node in graph.inputs()
        ),
        outputs=tuple(
            OutputRelation(
                baseline=output.name,
                candidate=output.name,
                choices=(("the same", identity((size, *_output_node(graph, output.name).type.shape))),),
            )
            for output in graph.outputs
        ),
        undecided={},
    )


def case_names() -> tuple[str, ...]:
    """All cases, by the path of their file below ``FOLDER`` without its suffix."""
    files = [*FOLDER.glob("proved/*.py"), *FOLDER.glob("unknown/*.py")]
    return tuple(sorted(file.relative_to(FOLDER).with_suffix("").as_posix() for file in files))


def load_pair(name: str) -> Pair:
    """The pair in a case's file."""
    pair = _module(name).PAIR
    assert isinstance(pair, Pair)
    return pair


def gap_of(name: str) -> str:
    """What the prover would have to know, where a case's file says ``GAP``; else nothing."""
    return str(getattr(_module(name), "GAP", ""))


def misplaced(name: str) -> str:
    """Why the verdict blames another line, where a case's file says ``MISPLACED``; else nothing."""
    return str(getattr(_module(name), "MISPLACED", ""))


@cache
def _module(name: str) -> ModuleType:
    spec = spec_from_file_location(f"scalify_case_{name.replace('/', '_')}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def suspect_lines(name: str) -> tuple[int, ...]:
    """The lines of a case's file that a verdict should blame."""
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return tuple(number for number, line in enumerate(lines, 1) if line.endswith(MARK))
