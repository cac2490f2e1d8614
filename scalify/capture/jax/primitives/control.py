"""Calls, branches and loops: inlined, chosen among, unrolled."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from scalify.capture.jax.primitives.collectives import HANDLERS as COLLECTIVES
from scalify.capture.jax.reader import Call, Handler, jaxprs_in
from scalify.load.hlo.program import Shape
from scalify.load.stablehlo.loops import MAX_ITERATIONS, EndlessLoop, unrolled

_CALLS = (
    "jit", "pjit", "closed_call", "core_call", "core_closed_call", "remat", "remat2", "checkpoint",
    "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call", "composite",
)  # fmt: skip


def _inlined(call: Call) -> Sequence[int]:
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call"):
        if key in call.params:
            return call.run(call.params[key], call.operands)
    raise call.refused("it holds no jaxpr that scalify knows of", "use jax.jit, jax.checkpoint or custom_vjp")


def _scan(call: Call) -> Sequence[int]:
    """As often as it is long: slices of what is scanned over go in, what comes out is stacked."""
    params = call.params
    length, consts, carries = (int(params[key]) for key in ("length", "num_consts", "num_carry"))
    if length > MAX_ITERATIONS:
        raise call.refused(
            f"it runs {length} times", f"loops of up to {MAX_ITERATIONS} iterations are unrolled"
        )
    fixed, carry = call.operands[:consts], list(call.operands[consts : consts + carries])
    scanned = call.operands[consts + carries :]
    rows: list[Sequence[int]] = []
    for step in range(length):
        place = length - 1 - step if params["reverse"] else step
        slices = [_row(call, value, place) for value in scanned]
        results = call.run(params["jaxpr"], [*fixed, *carry, *slices])
        carry = list(results[:carries])
        rows.append(results[carries:])
    if params["reverse"]:
        rows.reverse()
    stacked = call.shapes[carries:]
    return [*carry, *(_stack(call, [row[at] for row in rows], shape) for at, shape in enumerate(stacked))]


def _row(call: Call, value: int, place: int) -> int:
    shape = call.listing.shape(value)
    bounds = ((place, place + 1, 1), *((0, size, 1) for size in shape.dims[1:]))
    row = call.add("slice", (value,), Shape(shape.element, (1, *shape.dims[1:])), slices=bounds)
    return call.reshaped(row, shape.dims[1:])


def _stack(call: Call, rows: Sequence[int], shape: Shape) -> int:
    if not rows:
        return call.constant(0, shape)
    raised = [call.reshaped(row, (1, *shape.dims[1:])) for row in rows]
    return call.add("concatenate", raised, shape, dimensions=(0,))


def _while(call: Call) -> Sequence[int]:
    """As long as its condition follows from constants."""
    params = call.params
    of_condition, of_body = int(params["cond_nconsts"]), int(params["body_nconsts"])
    condition_consts = call.operands[:of_condition]
    body_consts = call.operands[of_condition : of_condition + of_body]
    try:
        return unrolled(
            call.listing,
            call.operands[of_condition + of_body :],
            lambda carry: call.run(params["cond_jaxpr"], [*condition_consts, *carry]),
            lambda carry: call.run(params["body_jaxpr"], [*body_consts, *carry]),
        )
    except EndlessLoop as error:
        raise call.refused(str(error), error.hint) from None


def _cond(call: Call) -> Sequence[int]:
    """All branches are run, and their results chosen among; a branch that is known is run alone."""
    which, *arguments = call.operands
    branches = call.params["branches"]
    known = call.listing.known(which)
    if known is not None:
        return call.run(branches[min(max(known, 0), len(branches) - 1)], arguments)
    if any(_communicates(branch.jaxpr) for branch in branches):
        raise call.refused("ranks exchange values in a branch", "exchange them before or after the condition")
    return call.chosen(which, [call.run(branch, arguments) for branch in branches])


def _communicates(jaxpr: Any) -> bool:
    return any(
        equation.primitive.name in COLLECTIVES or any(map(_communicates, jaxprs_in(equation.params)))
        for equation in jaxpr.eqns
    )


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {**dict.fromkeys(_CALLS, _inlined), "scan": _scan, "while": _while, "cond": _cond}
)
