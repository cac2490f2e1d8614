"""Meshes, and how ``sdy.manual_computation`` cuts values over their axes."""

from collections.abc import Iterator
from typing import Any

from scalify.errors import UnsupportedFormat
from scalify.load.stablehlo.listing import Axes

_HINT = "capture the function itself: scalify capture module.py:build"


def axes_of(module: Any) -> Axes:
    """The axes of the one mesh that manual computations are over; none where there is no such."""
    used = list(
        dict.fromkeys(name for operation in _manual(module.operation) for name in _mesh_names(operation))
    )
    meshes = {
        str(view.operation.attributes["sym_name"].value): _axes(view.operation)
        for view in module.body.operations
        if view.operation.name == "sdy.mesh"
    }
    found = list(dict.fromkeys(meshes.get(name, ()) for name in used))
    if len(found) > 1:
        raise UnsupportedFormat(f"the module uses several meshes: {', '.join(used)}", hint="use one mesh")
    if found and not found[0]:
        raise UnsupportedFormat(f"the module says nothing of its mesh {used[0]}", hint=_HINT)
    return found[0] if found else _partitions(module)


def _partitions(module: Any) -> Axes:
    """One axis of as many ranks as the module's attributes say, for modules that are one rank's already."""
    attributes = module.operation.attributes
    names = ("mhlo.num_replicas", "mhlo.num_partitions")
    replicas, partitions = (int(attributes[name].value) if name in attributes else 1 for name in names)
    if replicas > 1:
        raise UnsupportedFormat(
            f"the module is for {replicas} replicas", hint="use shard_map in place of pmap"
        )
    return (("rank", partitions),) if partitions > 1 and _names_ranks(module.operation) else ()


def _names_ranks(operation: Any) -> bool:
    return any(
        inner.name == "stablehlo.partition_id" or "replica_groups" in inner.attributes
        for inner in operations_in(operation)
    )


def operations_in(operation: Any) -> Iterator[Any]:
    """All operations within one."""
    pending = [operation]
    while pending:
        current = pending.pop()
        for region in current.regions:
            for block in region.blocks:
                for view in block.operations:
                    yield view.operation
                    pending.append(view.operation)


def _manual(operation: Any) -> Iterator[Any]:
    return (inner for inner in operations_in(operation) if inner.name == "sdy.manual_computation")


def _mesh_names(operation: Any) -> Iterator[str]:
    for key in ("in_shardings", "out_shardings"):
        for sharding in _shardings(operation.attributes[key]):
            yield str(sharding.mesh_or_ref).lstrip("@").strip('"')


def _shardings(attribute: Any) -> list[Any]:
    from jaxlib.mlir.dialects import sdy

    return [sdy.TensorShardingAttr(one) for one in sdy.TensorShardingPerValueAttr(attribute).shardings]


def _axes(operation: Any) -> Axes:
    from jaxlib.mlir.dialects import sdy

    mesh = sdy.MeshAttr(operation.attributes["mesh"])
    if list(mesh.device_ids) not in ([], list(range(len(mesh.device_ids)))):
        raise UnsupportedFormat("the mesh has its devices in an order of its own", hint="use a mesh in order")
    axes = [sdy.MeshAxisAttr(axis) for axis in mesh.axes]
    return tuple((str(axis.name), int(axis.size)) for axis in axes)


def cuts(operation: Any, key: str, axes: Axes) -> list[tuple[tuple[int, int], ...]]:
    """For each value, its dimensions with the manual axes they are cut over, by their places in the mesh."""
    from jaxlib.mlir.dialects import sdy

    places = {name: place for place, (name, _) in enumerate(axes)}
    manual = {str(axis) for axis in sdy.ManualAxesAttr(operation.attributes["manual_axes"])}
    manual = {name.strip('"') for name in manual}
    found: list[tuple[tuple[int, int], ...]] = []
    for sharding in _shardings(operation.attributes[key]):
        pairs: list[tuple[int, int]] = []
        if list(sharding.unreduced_axes):
            raise UnsupportedFormat("a value is still to be summed at the border of shard_map", hint=_HINT)
        for dim, cut in enumerate(sharding.dimension_shardings):
            for part in sdy.DimensionShardingAttr(cut).axes:
                axis = sdy.AxisRefAttr(part)
                if axis.sub_axis_info is not None:
                    raise UnsupportedFormat("a value is cut over a part of an axis", hint=_HINT)
                if str(axis.name) in manual:
                    pairs.append((dim, places[str(axis.name)]))
        found.append(tuple(pairs))
    return found
