"""Which lines led to an operator? Python frames, without those of the framework and of the recorder.

In: the running thread's frames. Out: an id per distinct stack, outermost frame first, cut off at the
frame that began the phase: what is further out led to the recording, not to the operator.
"""

import linecache
import os
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

import torch

import magneton
from magneton.profile.model import Frame, Stack, StackId
from magneton.record.torch.internals import calling_frame

_TORCH = str(Path(torch.__file__).parent) + os.sep
_MAGNETON = str(Path(magneton.__file__).parent) + os.sep
_MODELS = _MAGNETON + "models" + os.sep  # our own models are user code to the profiler
DEEPEST = 256  # frames kept, innermost first


class Stacks:
    """Interns stacks; ``rows`` grows by one for each that was not seen before."""

    def __init__(self) -> None:
        self.rows: list[Stack] = []
        self._ids: dict[tuple[tuple[CodeType, int], ...], StackId] = {}

    def here(self, outermost: FrameType | None) -> StackId:
        """The stack of the caller, out to ``outermost`` and including it."""
        places: list[tuple[CodeType, int]] = []
        frame = calling_frame()
        while frame is not None and len(places) < DEEPEST:
            if _is_told(frame.f_code.co_filename):
                places.append((frame.f_code, frame.f_lineno or 0))
            if frame is outermost:
                break
            frame = frame.f_back
        key = tuple(reversed(places))
        if key not in self._ids:
            self._ids[key] = StackId(len(self.rows))
            self.rows.append(Stack(frames=tuple(_frame(code, line) for code, line in key)))
        return self._ids[key]


@lru_cache(maxsize=4096)
def _is_told(file: str) -> bool:
    if file.startswith(_MAGNETON):
        return file.startswith(_MODELS)
    return not file.startswith((_TORCH, "<frozen "))


def _frame(code: CodeType, line: int) -> Frame:
    file = code.co_filename
    return Frame(file=file, line=line, function=code.co_qualname, code=linecache.getline(file, line).strip())
