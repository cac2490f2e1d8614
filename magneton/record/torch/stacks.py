"""Which lines led to an operator? Python frames, without those of the framework and of the recorder.

In: the running thread's frames. Out: an id per distinct stack, outermost frame first, cut off at the
frame that began the phase: what is further out led to the recording, not to the operator.
"""

import linecache
import os
import sys
from functools import cache
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
        self._ids: dict[tuple[tuple[int, int], ...], StackId] = {}
        self._by_frames: dict[Stack, StackId] = {}
        self._told: dict[int, tuple[CodeType, bool]] = {}

    def here(self, outermost: FrameType | None) -> StackId:
        """The stack of the caller, out to ``outermost`` and including it.

        Code objects are slow to hash and lines slow to find: places are compared by identity and
        instruction, and looked up only where a stack is new.
        """
        places: list[tuple[int, int]] = []
        frame = calling_frame()
        while frame is not None and len(places) < DEEPEST:
            if self._is_told(frame.f_code):
                places.append((id(frame.f_code), frame.f_lasti))
            if frame is outermost:
                break
            frame = frame.f_back
        key = tuple(reversed(places))
        if key not in self._ids:
            self._ids[key] = self._intern(Stack(frames=tuple(self._frame(*place) for place in key)))
        return self._ids[key]

    def _intern(self, stack: Stack) -> StackId:
        if stack not in self._by_frames:
            self._by_frames[stack] = StackId(len(self.rows))
            self.rows.append(stack)
        return self._by_frames[stack]

    def _is_told(self, code: CodeType) -> bool:
        known = self._told.get(id(code))
        if known is None:  # keeping the code keeps its identity from being used again
            known = self._told[id(code)] = code, _is_told(code.co_filename)
        return known[1]

    def _frame(self, code_id: int, instruction: int) -> Frame:
        code, _ = self._told[code_id]
        line = _line_at(code, instruction)
        text = linecache.getline(code.co_filename, line).strip()
        return Frame(file=_portable(code.co_filename), line=line, function=code.co_qualname, code=text)


def _is_told(file: str) -> bool:
    if file.startswith(_MAGNETON):
        return file.startswith(_MODELS)
    return not file.startswith((_TORCH, "<frozen "))


@cache
def _portable(file: str) -> str:
    """``file`` as seen from the folder it was imported from, else from the working folder.

    ``transformers/models/llama/modeling_llama.py`` means the same on every machine and tells nobody's home.
    """
    # abspath, since Path.resolve would follow links, and the names of files that were imported do not.
    places = {os.path.abspath(place) for place in sys.path} | {str(Path(_MAGNETON).parent)}  # noqa: PTH100
    for place in (*sorted(places, key=len, reverse=True), str(Path.cwd())):
        if file.startswith(place + os.sep):
            return file[len(place) + 1 :]
    return file


def _line_at(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno
