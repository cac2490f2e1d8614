"""One program out of every rank's own: equal up to integers that are affine in the rank's digits.

In: a graph per rank of a mesh. Out: one graph for all of them, in which an integer that differs is a
``RankInt``, checked on every rank. What differs otherwise (another op, shape or wiring) is an error that
names the node, the attribute and the ranks: one graph cannot stand for such ranks. Time is linear in
ranks x nodes; ranks whose graph is the same object cost nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.check import place
from scalify.ir.graph import Attr, Graph, Node, NodeId, TensorType
from scalify.ir.mesh import Mesh, MeshAxis, RankInt

# Where an integer may differ from rank to rank: the attributes that the vocabulary says so of.
_MAY_DIFFER = frozenset({
    ("slice", "starts"), ("slice", "limits"), ("update_slice", "starts"), ("constant", "data"),
})  # fmt: skip


def merge(graphs: Mapping[int, Graph], mesh: Mesh) -> Graph:
    """The program that all ranks of the mesh run. ``graphs`` has one for every rank."""
    check_complete(graphs, mesh)
    first = graphs[0]
    others = [(rank, graph) for rank, graph in sorted(graphs.items()) if graph is not first]
    if not others:
        return replace(first, mesh=mesh)
    for rank, graph in others:
        _check_alike(first, graph, rank)
    nodes: list[Node] = []
    for at, node in enumerate(first.nodes):
        differing = [(rank, graph.nodes[at]) for rank, graph in others if not _same(node, graph.nodes[at])]
        nodes.extend(_merged(node, dict(differing), mesh) if differing else (node,))
    return replace(first, nodes=tuple(nodes), mesh=mesh)


def check_complete(graphs: Mapping[int, Graph], mesh: Mesh) -> None:
    """Raise InvalidGraph unless there is a program for every rank of the mesh, made for it."""
    missing = [rank for rank in range(mesh.size) if rank not in graphs]
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        raise InvalidGraph(
            f"the programs of ranks {shown} of {mesh.size} are missing", hint="give one graph for every rank"
        )
    if len(graphs) != mesh.size:
        raise InvalidGraph(
            f"{len(graphs)} programs for {mesh.size} ranks", hint="give one graph for every rank"
        )
    for rank, graph in graphs.items():
        if graph.mesh not in (mesh, Mesh()):
            raise InvalidGraph(
                f"rank {rank}'s graph is of mesh {_shown(graph.mesh)}, the others of {_shown(mesh)}",
                hint="capture all ranks on the same mesh",
            )


def _shown(mesh: Mesh) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.axes) or "one device"


def _check_alike(first: Graph, graph: Graph, rank: int) -> None:
    """The same ops on the same operands, node by node, and the same outputs. Ids are each rank's own."""
    ours: dict[NodeId, NodeId] = {}
    for one, other in zip(first.nodes, graph.nodes, strict=False):
        ours[other.id] = one.id
        if one is other:
            continue
        if one.op != other.op:
            raise _differ(one, rank, f"{one.op} on rank 0 but {other.op} on rank {rank}")
        if one.operands != tuple(ours[operand] for operand in other.operands):
            raise _differ(one, rank, f"{one.op} of other operands on rank {rank} than on rank 0")
        if one.type != other.type:
            raise _differ(
                one, rank, f"of type {_type(one.type)} on rank 0 but {_type(other.type)} on rank {rank}"
            )
        if one.attrs.keys() != other.attrs.keys():
            raise _differ(one, rank, f"with other attributes on rank {rank} than on rank 0")
    if len(first.nodes) != len(graph.nodes):
        raise InvalidGraph(
            f"rank 0 runs {len(first.nodes)} operations, rank {rank} {len(graph.nodes)}: "
            f"{_beyond(first, graph, rank)}",
            hint=_HINT,
        )
    if first.outputs != tuple(replace(output, value=ours[output.value]) for output in graph.outputs):
        raise InvalidGraph(f"rank {rank} has other outputs than rank 0", hint=_HINT)


def _beyond(first: Graph, graph: Graph, rank: int) -> str:
    """The first that one of them runs after all that they have in common."""
    common = min(len(first.nodes), len(graph.nodes))
    longer, who = (graph, rank) if len(graph.nodes) > common else (first, 0)
    return f"rank {who} alone runs {place(longer.nodes[common])}"


_HINT = "ranks may differ in where their shards start, not in what they do: verify such ranks one by one"


def _type(type_: TensorType) -> str:
    return f"{type_.dtype}[{','.join(map(str, type_.shape))}]"


def _differ(node: Node, rank: int, how: str) -> InvalidGraph:
    at = f" ({node.site.file}:{node.site.line})" if node.site else ""
    return InvalidGraph(f"ranks 0 and {rank} run different programs: {node.id}{at} is {how}", hint=_HINT)


def _same(one: Node, other: Node) -> bool:
    return one is other or one.attrs is other.attrs or one.attrs == other.attrs


def _merged(node: Node, differing: Mapping[int, Node], mesh: Mesh) -> tuple[Node, ...]:
    """The node with RankInt attributes. A float constant that is whole everywhere becomes a cast integer."""
    attrs: dict[str, Attr] = {}
    for name, value in node.attrs.items():
        values = [differing[rank].attrs[name] if rank in differing else value for rank in range(mesh.size)]
        if all(other == value for other in values):
            attrs[name] = value
            continue
        if (node.op, name) not in _MAY_DIFFER:
            rank = next(rank for rank, other in enumerate(values) if other != value)
            raise _differ(
                node, rank, f"{node.op} with {name} {value} on rank 0 and {values[rank]} on rank {rank}"
            )
        attrs[name] = _affine(node, name, values, mesh)
    merged = replace(node, attrs=MappingProxyType(attrs))
    if node.op == "constant" and node.type.dtype[0] not in "iu":
        return _cast_from_integer(merged)
    return (merged,)


def _cast_from_integer(node: Node) -> tuple[Node, ...]:
    whole = replace(node, id=NodeId(f"{node.id}.whole"), type=TensorType("i64", node.type.shape))
    cast = replace(node, op="cast", operands=(whole.id,), attrs=MappingProxyType({}))
    return whole, cast


def _affine(node: Node, name: str, values: Sequence[Attr], mesh: Mesh) -> Attr:
    """Each integer of a tuple as a function of the rank."""
    columns = [value for value in values if isinstance(value, tuple)]
    length = len(columns[0]) if columns else 0
    if len(columns) != len(values) or any(len(column) != length for column in columns):
        raise _differ(node, _first_other(values), f"{node.op} with {name} of another length there")
    merged: list[Attr] = []
    for at in range(length):
        numbers = [_whole(column[at]) for column in columns]
        found = (
            affine([number for number in numbers if number is not None], mesh)
            if None not in numbers
            else None
        )
        if found is None:
            shown = ", ".join(str(column[at]) for column in columns[:8])
            rank = _first_other([column[at] for column in columns])
            raise _differ(node, rank, f"{node.op} with {name}[{at}] = {shown} on ranks 0, 1, ...: not affine")
        merged.append(found)
    return tuple(merged)


def _first_other(values: Sequence[Attr]) -> int:
    return next((rank for rank, value in enumerate(values) if value != values[0]), 0)


def _whole(value: Attr) -> int | None:
    """The integer that a number is, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 2**53 and value == int(value) else None


def affine(values: Sequence[int], mesh: Mesh) -> int | RankInt | None:
    """The integer with these values on ranks 0, 1, ..., if it is affine in digits of the rank's number."""
    if all(value == values[0] for value in values):
        return values[0]
    terms: list[tuple[int, int, int]] = []
    for axis in mesh.placed():
        steps = [values[digit * axis.stride] - values[0] for digit in range(axis.size)]
        found = _axis_terms(axis, steps)
        if found is None:
            return None
        terms.extend(found)
    made = RankInt(base=values[0], terms=tuple(terms)) if terms else None
    if made is None or any(made.at(rank) != value for rank, value in enumerate(values)):
        return None
    return made


def _axis_terms(axis: MeshAxis, steps: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Terms for a function of one axis: by the whole coordinate, else by its digits in some mixed radix."""
    for radices in _radices(axis.size):
        terms: list[tuple[int, int, int]] = []
        stride = 1
        for radix in radices:
            factor = steps[stride]
            if factor:
                terms.append((axis.stride * stride, radix, factor))
            stride *= radix
        if all(_value(terms, axis.stride * digit) == step for digit, step in enumerate(steps)):
            return _joined(terms)
    return None


def _value(terms: Sequence[tuple[int, int, int]], rank: int) -> int:
    return sum(factor * (rank // stride % size) for stride, size, factor in terms)


def _joined(terms: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Neighbouring digits that count on as one are one."""
    joined: list[tuple[int, int, int]] = []
    for stride, size, factor in terms:
        if joined:
            below = joined[-1]
            if below[0] * below[1] == stride and below[2] * below[1] == factor:
                joined[-1] = (below[0], below[1] * size, below[2])
                continue
        joined.append((stride, size, factor))
    return joined


def _radices(size: int) -> list[tuple[int, ...]]:
    """Ways to write a coordinate in digits, least significant first; the undivided one first."""
    if size == 1:
        return [()]
    primes = _primes(size)
    orders = sorted(set(permutations(primes))) if len(primes) <= 6 else [tuple(primes)]
    return [(size,), *orders]


def _primes(number: int) -> list[int]:
    found: list[int] = []
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found
