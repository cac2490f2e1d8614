"""The dataflow pass: every operator of a step, with what it read, made, viewed and overwrote.

In: a system's step, run inside ``Recorder.phase``. Out: a ``Trace`` of that phase, rows of the profile's
tables. Ids go on counting over the phases of one recorder.

The recorder sits in a dispatch mode, below autograd: it sees the operators that run, also those of a
backward pass. What it does itself (sketches, counts) happens inside the handler, where the mode is off, so
that it is never recorded. It draws no random number and leaves every result as it was.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.profile.model import KeyId
from magneton.record.torch.calls import signature_of
from magneton.record.torch.cutting import Cutting
from magneton.record.torch.internals import calling_frame
from magneton.record.torch.keys import operator_key
from magneton.record.torch.opening import Openings
from magneton.record.torch.patches import PatchOf, patch_sketch
from magneton.record.torch.recording import KeyOf, Recording
from magneton.record.torch.sketching import CAP, SketchOf, sketch_tensor
from magneton.record.torch.stacks import Stacks
from magneton.record.torch.values import Values
from magneton.workload import Phase


class Recorder:
    """Records the phases of one system, one after the other. ``results_only``: names and values of operators,
    nothing that describes them, and sketches of what they compute.

    with recorder.phase("prefill", system.roots()) as recording:
        system.step("prefill")
    recording.trace
    """

    def __init__(
        self,
        *,
        key_of: KeyOf = operator_key,
        cap: int = CAP,
        sketch: SketchOf = sketch_tensor,
        patch: PatchOf | None = patch_sketch,
        openings: Openings | None = None,
        results_only: bool = False,
    ) -> None:
        self.key_ids: dict[str, KeyId] = {}
        self._key_of = key_of
        self._results_only = results_only
        self._values = Values(cap=cap, sketch=sketch, patch=patch, results_only=results_only)
        self._stacks = Stacks()
        self._operators = 0
        self._openings = Openings() if openings is None else openings

    @contextmanager
    def phase(self, phase: Phase, roots: Mapping[str, Any]) -> Generator["Recording"]:
        """Record what runs inside. ``roots`` give parameters, inputs and modules their names.

        Compiled code runs uncompiled here: a compiled graph shows no operators, and what insists on
        being compiled (``fullgraph=True``) refuses to run under a dispatch mode.
        """
        recording = Recording(
            phase=phase,
            roots=roots,
            values=self._values,
            stacks=self._stacks,
            key_ids=self.key_ids,
            key_of=self._key_of,
            first_operator=self._operators,
            outermost=_caller(),
            results_only=self._results_only,
        )
        try:
            with (
                torch.compiler.set_stance("force_eager"),
                recording.modules.followed(),
                DataflowMode(recording, self._openings),
            ):
                yield recording
        finally:
            recording.close()
            self._operators += len(recording.trace.operators)


def _caller() -> FrameType | None:
    """The frame that began the phase: the one outside this file and contextlib."""
    frame = calling_frame()
    while frame is not None and frame.f_code.co_filename in (__file__, contextmanager.__code__.co_filename):
        frame = frame.f_back
    return frame


class DataflowMode(TorchDispatchMode):
    """Hands every operator that runs to a recording."""

    supports_higher_order_operators = True

    def __init__(self, recording: "Recording", openings: Openings) -> None:
        super().__init__()
        self._recording = recording
        self._openings = openings
        self._cutting = Cutting()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if signature_of(func).decomposes:
            return self._cutting.parts(self, func, args, kwargs or {})
        inside = self._openings.inside(func, args, kwargs or {})
        if inside is None:
            return self._cutting.part(func, args, self._recording.observe(func, args, kwargs or {}))
        return self._open(func, inside, args, kwargs or {})

    def _open(
        self, func: Any, inside: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return inside(*args, **kwargs)

        result, explained = self._recording.observe_inside(func, args, kwargs, run)
        if not explained:
            self._openings.close(func)
        return result
