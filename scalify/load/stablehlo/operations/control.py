"""Calls, branches and loops: inlined, chosen among, unrolled; and custom calls."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from scalify.load.hlo.program import Shape
from scalify.load.stablehlo.loops import EndlessLoop, unrolled
from scalify.load.stablehlo.manual import operations_in
from scalify.load.stablehlo.reader import Handler, Reader, Step

_ACROSS = frozenset(
    {
        "stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter", "stablehlo.all_to_all",
        "stablehlo.collective_permute", "stablehlo.collective_broadcast",
    }
)  # fmt: skip
_COMPOSITES = {"chlo.erf": "erf", "chlo.erfc": "erfc", "chlo.tan": "tan"}
_PARTITIONERS = frozenset({"SPMDFullToShardShape", "SPMDShardToFullShape"})
_IDENTITIES = frozenset({"Sharding", "annotate_device_placement", "xla.sdy.FuncResultSharding"})


def _called(step: Step, name: str) -> Sequence[int]:
    function = step.reader.functions.get(name)
    if function is None:
        raise step.refused(f"calls {name!r}, which the module does not have")
    return step.reader.run(function.regions[0].blocks[0], step.operands, {}, step.metadata)


def _call(step: Step) -> Sequence[int]:
    return _called(step, str(step.attribute("callee").value))


def _composite(step: Step) -> Sequence[int]:
    name = str(step.attribute("name").value)
    if name in _COMPOSITES:
        return (step.add(_COMPOSITES[name], step.operands),)
    if name == "chlo.top_k":
        k = step.shape.dims[-1]
        whole = step.add("topk", step.operands, Shape("tuple", parts=step.shapes), k=k, largest=True)
        return step.listing.parts(whole, step.metadata)
    return _called(step, str(step.attribute("decomposition").value))


def _while(step: Step) -> Sequence[int]:
    try:
        return unrolled(
            step.listing,
            step.operands,
            lambda carry: step.run(step.block(0), carry),
            lambda carry: step.run(step.block(1), carry),
        )
    except EndlessLoop as error:
        raise step.refused(f"cannot be unrolled: {error}") from None


def _case(step: Step) -> Sequence[int]:
    """All branches are run, and their results chosen among; a branch that is known is run alone."""
    (which,) = step.operands
    blocks = [region.blocks[0] for region in step.operation.regions]
    if step.name == "stablehlo.if":
        blocks.reverse()  # The branch of the true comes first.
        which = step.add("convert", (which,), Shape("s32"))
    known = step.listing.known(which)
    if known is not None:
        return step.run(blocks[known if 0 <= known < len(blocks) else -1], ())
    if _communicates(step.reader, step.operation):
        raise step.refused("exchanges values between ranks in a branch")
    if not _is_counted(step, which, len(blocks)):
        raise step.refused("chooses by a number that is not known to be in range")
    return step.chosen(which, [step.run(block, ()) for block in blocks])


def _is_counted(step: Step, which: int, count: int) -> bool:
    """Whether the number is surely one of the branches': a truth, or clamped. A negative one is the last."""
    opcode, _ = step.listing.opcode(which)
    operands = step.listing.inputs(which)
    if opcode == "convert" and step.listing.shape(operands[0]).element == "pred":
        return count >= 2
    return opcode == "clamp" and (step.listing.known(operands[0]) or 0) >= 0


def _communicates(reader: Reader, operation: Any) -> bool:
    """Whether ranks exchange values in an operation's regions, or in what is called from there."""
    pending, seen = [operation], set[str]()
    while pending:
        for inner in operations_in(pending.pop()):
            if inner.name in _ACROSS:
                return True
            callee = str(inner.attributes["callee"].value) if inner.name == "func.call" else ""
            if callee in reader.functions and callee not in seen:
                seen.add(callee)
                pending.append(reader.functions[callee])
    return False


def _custom_call(step: Step) -> Sequence[int]:
    target = str(step.attribute("call_target_name").value)
    if target in _PARTITIONERS:
        raise step.refused(f"is {target}: the module was lowered for the partitioner before Shardy")
    if target in _IDENTITIES and len(step.operands) == 1 and step.shape_at(0) == step.shape:
        return step.operands
    effect = step.attribute("has_side_effect")
    if effect is not None and bool(effect.value):
        raise step.refused(f"calls {target}, which has effects beyond its result")
    attributes = {str(name): str(step.operation.attributes[name]) for name in step.operation.attributes}
    config = tuple(sorted(attributes.items()))
    return [
        step.add("custom-call", step.operands, shape, target=target, extras=(*config, ("result", str(place))))
        for place, shape in enumerate(step.shapes)
    ]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "func.call": _call,
        "stablehlo.composite": _composite,
        "stablehlo.while": _while,
        "stablehlo.case": _case,
        "stablehlo.if": _case,
        "stablehlo.custom_call": _custom_call,
    }
)
