"""Weights that an operator uses without being given them: packed beforehand, and known by a handle only.

They are found where the code that calls the operator still has them: among the variables between the
operator and the module it runs in; else a system's adapter says what a module has packed away.
"""

from types import FrameType

from torch import Tensor, nn

from magneton.record.torch.calls import Call
from magneton.record.torch.storage import shows_same_memory

HIDDEN_ROOT = "hidden"  # the root that maps paths of modules to weights they have packed away
FURTHEST = 13  # frames, those of the recorder included


def hidden_parameters(call: Call, frame: FrameType | None) -> tuple[Tensor, ...]:
    """Parameters in reach of the code that called an operator of another library, if it was given none."""
    if any(isinstance(tensor, nn.Parameter) for tensor in call.tensors):
        return ()
    found: dict[int, Tensor] = {}
    for _ in range(FURTHEST):
        if frame is None:
            break
        for variable in frame.f_locals.values():
            if isinstance(variable, nn.Parameter) and variable.numel():
                found[id(variable)] = variable
        if isinstance(frame.f_locals.get("self"), nn.Module):
            break
        frame = frame.f_back
    return tuple(p for p in found.values() if not any(shows_same_memory(p, t) for t in call.tensors))
