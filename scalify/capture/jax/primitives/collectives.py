"""Primitives in which ranks exchange values along named axes of the mesh, and shard_map's border."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

from scalify.capture.jax.reader import Call, Handler
from scalify.capture.jax.values import shape_of
from scalify.ir.mesh import Groups, Mesh
from scalify.load.hlo.program import Shape

_SUMS = ("psum", "psum2", "psum_invariant")
_COMBINED = {**dict.fromkeys(_SUMS, "add"), "pmax": "maximum", "pmin": "minimum"}
_OF_TRUTHS = {"add": "or", "maximum": "or", "minimum": "and"}


def axes_named(call: Call) -> tuple[str, ...]:
    """The mesh axes that the equation's parameters name."""
    known = {name for name, _ in call.listing.axes}
    found: list[str] = []
    for key in ("axes", "axis_name", "axis_names"):
        value = call.params.get(key, ())
        found.extend(name for name in _listed(value) if name in known)
    return tuple(found)


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list | frozenset | set) else (value,)


def _named(call: Call, key: str) -> tuple[str, ...]:
    """The axes a collective is over, all of them of the mesh."""
    names = _listed(call.params[key])
    known = {name for name, _ in call.listing.axes}
    strange = [name for name in names if name not in known]
    if strange:
        raise call.refused(
            f"it is over {strange[0]!r}, which is no axis of the mesh of shard_map",
            "capture the function with its shard_map around it",
        )
    return tuple(names)


def _groups(call: Call, names: Sequence[str]) -> Groups:
    """Ranks that agree on all other axes, in the order of ``names``, the last fastest; cut up further where
    ``axis_index_groups`` says so."""
    mesh = Mesh(axes=call.listing.axes)
    placed = {axis.name: axis for axis in mesh.placed()}
    inner = [placed[name] for name in names]
    outer = [axis for axis in mesh.placed() if axis.name not in names]
    members = [
        sum(digit * axis.stride for digit, axis in zip(digits, inner, strict=True))
        for digits in product(*(range(axis.size) for axis in inner))
    ]
    firsts = [
        sum(digit * axis.stride for digit, axis in zip(digits, outer, strict=True))
        for digits in product(*(range(axis.size) for axis in outer))
    ]
    parts: Iterable[Sequence[int]] = call.params.get("axis_index_groups") or [range(len(members))]
    if len({len(part) for part in parts}) > 1:
        raise call.refused("its groups are of several sizes", "use groups of one size")
    return tuple(tuple(first + members[place] for place in part) for part in parts for first in firsts)


def _reduced(call: Call) -> Sequence[int]:
    names = _named(call, "axes")
    opcode = _COMBINED[call.primitive]
    results: list[int] = []
    for operand, shape in zip(call.operands, call.shapes, strict=True):
        wanted = _OF_TRUTHS[opcode] if shape.element == "pred" else opcode
        combiner = call.listing.combiner(wanted, shape.element)
        groups = _groups(call, names)
        results.append(
            call.add(
                "all-reduce", (operand,), shape, called=(combiner,), groups=groups, channel=1, global_ids=True
            )
        )
    return results


def _all_gather(call: Call) -> Sequence[int]:
    groups = _groups(call, _named(call, "axis_name"))
    (value,), dim = call.operands, int(call.params["all_gather_dimension"])
    if not call.params["tiled"]:
        dims = call.shape_at(0).dims
        value = call.reshaped(value, (*dims[:dim], 1, *dims[dim:]))
    return (call.add("all-gather", (value,), dimensions=(dim,), groups=groups, channel=1, global_ids=True),)


def _reduce_scatter(call: Call) -> Sequence[int]:
    groups = _groups(call, _named(call, "axis_name"))
    dim, shape = int(call.params["scatter_dimension"]), call.shape
    made = shape
    if not call.params["tiled"]:
        made = Shape(shape.element, (*shape.dims[:dim], 1, *shape.dims[dim:]))
    scattered = call.add(
        "reduce-scatter",
        call.operands,
        made,
        dimensions=(dim,),
        called=(call.listing.combiner("add", shape.element),),
        groups=groups,
        channel=1,
        global_ids=True,
    )
    return (call.reshaped(scattered, shape.dims),)


def _all_to_all(call: Call) -> Sequence[int]:
    """Untiled: dimension ``split`` is dealt out, and whose piece it was becomes dimension ``concat``."""
    groups = _groups(call, _named(call, "axis_name"))
    split, concat = int(call.params["split_axis"]), int(call.params["concat_axis"])
    (value,) = call.operands
    if call.params["tiled"]:
        return (call.add("exchange", (value,), dimensions=(split, concat), groups=groups),)
    rank = len(call.shape_at(0).dims)
    others = [dim for dim in range(rank) if dim != split]
    moved = call.transposed(value, (split, *others))
    swapped = call.add("exchange", (moved,), call.listing.shape(moved), dimensions=(0, 0), groups=groups)
    order = [*range(1, rank)]
    order.insert(concat, 0)
    return (call.transposed(swapped, order),)


def _pbroadcast(call: Call) -> Sequence[int]:
    """Everybody has the value of one member; of a group, HLO has it be the first."""
    names = _named(call, "axis_name" if "axis_name" in call.params else "axes")
    source = int(call.params["source"])
    groups = tuple((*group[source:], *group[:source]) for group in _groups(call, names))
    return [
        call.add("collective-broadcast", (operand,), shape, groups=groups, channel=1)
        for operand, shape in zip(call.operands, call.shapes, strict=True)
    ]


def _ppermute(call: Call) -> Sequence[int]:
    groups = _groups(call, _named(call, "axis_name"))
    pairs = tuple(
        (group[source], group[target]) for group in groups for source, target in call.params["perm"]
    )
    return (call.add("collective-permute", call.operands, pairs=pairs, channel=1),)


def _axis_index(call: Call) -> Sequence[int]:
    """The place among the ranks along the axes, the last of them fastest."""
    axes = dict(call.listing.axes)
    numbers = {name: place for place, name in enumerate(axes)}
    total: int | None = None
    for name in _named(call, "axis_name"):
        place = call.add("axis-index", (), dimensions=(numbers[name],))
        if total is not None:
            size = call.constant(axes[name], call.shape)
            place = call.add("add", (call.add("multiply", (total, size)), place))
        total = place
    assert total is not None
    return (total,)


def _shard_map(call: Call) -> Sequence[int]:
    """Every rank takes its block, runs the body, and the blocks are put together."""
    jaxpr = call.params["jaxpr"]
    inside = [
        call.cut("shard", operand, _pairs(call, spec), shape_of(variable.aval))
        for operand, spec, variable in zip(call.operands, call.params["in_specs"], jaxpr.invars, strict=True)
    ]
    results = call.run(jaxpr, inside)
    return [
        call.cut("unshard", result, _pairs(call, spec), shape)
        for result, spec, shape in zip(results, call.params["out_specs"], call.shapes, strict=True)
    ]


def _pairs(call: Call, spec: Any) -> tuple[tuple[int, int], ...]:
    """Dimensions with the axes they are cut over, by their places in the mesh."""
    places = {name: place for place, (name, _) in enumerate(call.listing.axes)}
    return tuple(
        (dim, places[name]) for dim, names in enumerate(spec) if names is not None for name in _listed(names)
    )


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **dict.fromkeys(_COMBINED, _reduced),
        "all_gather": _all_gather,
        "all_gather_invariant": _all_gather,
        "reduce_scatter": _reduce_scatter,
        "all_to_all": _all_to_all,
        "ppermute": _ppermute,
        "pbroadcast": _pbroadcast,
        "axis_index": _axis_index,
        "shard_map": _shard_map,
    }
)
