"""Operations in which ranks exchange values, the rank's own number, and the border of shard_map."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scalify.ir.mesh import Groups
from scalify.load.stablehlo.attributes import rows, shape_of
from scalify.load.stablehlo.manual import cuts
from scalify.load.stablehlo.operations.regions import combination
from scalify.load.stablehlo.reader import Handler, Step


def _groups(step: Step) -> Groups:
    """Groups of ranks: there is one replica, so partitions, global ids and ranks are numbered alike."""
    if step.attribute("channel_handle") is None:
        raise step.refused("is among replicas")
    groups = rows(step.attribute("replica_groups"))
    if any(member < 0 for group in groups for member in group):
        raise step.refused("has groups of several sizes")
    return groups


def _combiner(step: Step) -> int:
    opcode = combination(step)
    if opcode in (None, "second"):
        raise step.refused("combines in a way that has no name here")
    assert opcode is not None
    return step.listing.combiner(opcode, step.shape.element)


def _all_reduce(step: Step) -> Sequence[int]:
    groups, combiner = _groups(step), _combiner(step)
    return [
        step.add("all-reduce", (value,), shape, called=(combiner,), groups=groups, channel=1, global_ids=True)
        for value, shape in zip(step.operands, step.shapes, strict=True)
    ]


def _all_gather(step: Step) -> Sequence[int]:
    groups, dims = _groups(step), (step.integer("all_gather_dim"),)
    return [
        step.add("all-gather", (value,), shape, dimensions=dims, groups=groups, channel=1, global_ids=True)
        for value, shape in zip(step.operands, step.shapes, strict=True)
    ]


def _reduce_scatter(step: Step) -> Sequence[int]:
    return (
        step.add(
            "reduce-scatter",
            step.operands,
            dimensions=(step.integer("scatter_dimension"),),
            called=(_combiner(step),),
            groups=_groups(step),
            channel=1,
            global_ids=True,
        ),
    )


def _all_to_all(step: Step) -> Sequence[int]:
    groups, dims = _groups(step), (step.integer("split_dimension"), step.integer("concat_dimension"))
    return [
        step.add("exchange", (value,), shape, dimensions=dims, groups=groups)
        for value, shape in zip(step.operands, step.shapes, strict=True)
    ]


def _broadcast(step: Step) -> Sequence[int]:
    """The first of each group is the source."""
    return (step.add("collective-broadcast", step.operands, groups=_groups(step), channel=1),)


def _permute(step: Step) -> Sequence[int]:
    if step.attribute("channel_handle") is None:
        raise step.refused("is among replicas")
    pairs = tuple((row[0], row[1]) for row in rows(step.attribute("source_target_pairs")))
    return (step.add("collective-permute", step.operands, pairs=pairs, channel=1),)


def _partition_id(step: Step) -> Sequence[int]:
    if not step.listing.axes:
        return (step.constant(0, step.shape),)
    return (step.add("partition-id", ()),)


def _replica_id(step: Step) -> Sequence[int]:
    return (step.constant(0, step.shape),)


def _manual_computation(step: Step) -> Sequence[int]:
    """Every rank takes its block, runs the body, and the blocks are put together."""
    axes, block = step.listing.axes, step.block()
    inside = [
        step.cut("shard", value, pairs, shape_of(argument.type))
        for value, pairs, argument in zip(
            step.operands, cuts(step.operation, "in_shardings", axes), block.arguments, strict=True
        )
    ]
    results = step.run(block, inside)
    return [
        step.cut("unshard", value, pairs, shape)
        for value, pairs, shape in zip(
            results, cuts(step.operation, "out_shardings", axes), step.shapes, strict=True
        )
    ]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "stablehlo.all_reduce": _all_reduce,
        "stablehlo.all_gather": _all_gather,
        "stablehlo.reduce_scatter": _reduce_scatter,
        "stablehlo.all_to_all": _all_to_all,
        "stablehlo.collective_permute": _permute,
        "stablehlo.collective_broadcast": _broadcast,
        "stablehlo.partition_id": _partition_id,
        "stablehlo.replica_id": _replica_id,
        "sdy.manual_computation": _manual_computation,
    }
)
