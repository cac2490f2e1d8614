"""What operations of StableHLO, CHLO and Shardy become, family by family; and what becomes of the others."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scalify.load.stablehlo.operations import collectives, control, elementwise, movement, regions
from scalify.load.stablehlo.reader import Handler, Step

__all__ = ["HANDLERS", "unknown"]

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **elementwise.HANDLERS,
        **movement.HANDLERS,
        **regions.HANDLERS,
        **collectives.HANDLERS,
        **control.HANDLERS,
    }
)
_OF_RANKS = ("replica_groups", "source_target_pairs", "channel_handle")


def unknown(step: Step) -> Sequence[int]:
    """A pure function without a meaning, told from others by its attributes; one result after the other."""
    attributes = {str(name): str(step.operation.attributes[name]) for name in step.operation.attributes}
    if list(step.operation.regions) or any(name in attributes for name in _OF_RANKS):
        raise step.refused("is not read")
    config = tuple(sorted(attributes.items()))
    return [
        step.add(step.name, step.operands, shape, extras=(*config, ("result", str(place))))
        for place, shape in enumerate(step.shapes)
    ]
