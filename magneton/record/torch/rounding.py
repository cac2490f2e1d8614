"""How far a value drifts when numbers are rounded otherwise: the step once more, with noise in every result.

In: a running system, the phase. Out: a trace like that of the dataflow pass, ``drifts`` of which tell, value
by value, how far the two runs are apart. Two systems that do the same work in another order, or with other
kernels, differ by about as much, so matching need not guess what still passes for equal.

Each result of floating-point arithmetic is multiplied by 1 + u, u uniform within one unit in the last place
of its type (Monte Carlo arithmetic: D. S. Parker, UCLA CSD-970002, 1997). Results only: what existed
before the step (parameters, inputs, caches) is never touched.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.profile.distance import distances
from magneton.profile.model import ValueId
from magneton.profile.sketches import Sketch, stack_sketches
from magneton.record.torch.calls import inspect_call, tensors_in
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.internals import storage_identity, unobserved
from magneton.record.torch.opening import Openings
from magneton.record.torch.recording import Recording, Trace
from magneton.record.torch.storage import shows_same_memory
from magneton.workload import Phase

SEED = 0
TF32_STEP = 2.0**-10


class Rounder:
    """Traces the phases of one system under noise, one after the other, as a ``Recorder`` does without."""

    def __init__(self, openings: Openings | None = None) -> None:
        self._recorder = Recorder(key_of=lambda func, args, kwargs: "", openings=openings, results_only=True)

    @contextmanager
    def phase(self, phase: Phase, roots: Mapping[str, Any]) -> Generator[Recording]:
        with RoundingMode(), self._recorder.phase(phase, roots) as recording:
            yield recording


class RoundingMode(TorchDispatchMode):
    """Perturbs results, in memory made under this mode only. Draws from a generator of its own."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._made: set[int] = set()  # identities of storages
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        call = inspect_call(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        results = tuple(tensors_in(result))
        fresh = [t for t in results if not any(shows_same_memory(t, given) for given in call.tensors)]
        self._made.update(storage_identity(tensor) for tensor in fresh)
        if call.signature.allocates or call.signature.random:
            return result
        written = [tensor for tensor in call.written if storage_identity(tensor) in self._made]
        for tensor in (*fresh, *written):
            if tensor.is_floating_point() and tensor.numel():
                self._perturb(tensor)
        return result

    def _perturb(self, tensor: Tensor) -> None:
        with unobserved(tensor.device.type):
            wide = tensor if tensor.dtype == torch.float64 else tensor.float()
            draws = torch.rand(
                tensor.shape, generator=self._generator(tensor.device), device=tensor.device, dtype=wide.dtype
            )
            noisy = wide * (1.0 + last_place(tensor) * (2.0 * draws - 1.0))
            # A mask made of the lowest finite number must not become infinite.
            tensor.copy_(torch.where(noisy.isfinite(), noisy, wide))

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(SEED)
        return self._generators[device]


def last_place(tensor: Tensor) -> float:
    """One unit in the last place, relative, of the arithmetic that made ``tensor``."""
    tf32 = tensor.is_cuda and tensor.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
    return TF32_STEP if tf32 else torch.finfo(tensor.dtype).eps


def drifts(trace: Trace, noisy: Trace) -> Mapping[ValueId, float]:
    """The distance of each computed value from itself under noise, as far as both runs do the same.

    They part where operators differ, or where noise decided something (another token, another expert):
    after that, values differ by more than rounding.
    """
    before, after = dict(trace.sketches), dict(noisy.sketches)
    pairs = tuple(_corresponding(trace, noisy, before, after))
    rows = np.arange(len(pairs))
    apart = distances(
        stack_sketches([before[value] for value, _ in pairs]),
        rows,
        stack_sketches([after[other] for _, other in pairs]),
        rows,
    )
    return {value: float(drift) for (value, _), drift in zip(pairs, apart, strict=True) if np.isfinite(drift)}


def _corresponding(
    trace: Trace,
    noisy: Trace,
    before: Mapping[ValueId, Sketch | None],
    after: Mapping[ValueId, Sketch | None],
) -> Iterator[tuple[ValueId, ValueId]]:
    dtypes = {row.value_id: row.dtype for row in trace.values}
    for one, other in zip(trace.operators, noisy.operators, strict=False):
        if one.name != other.name or len(one.outputs) != len(other.outputs):
            return
        for value, counterpart in zip(one.outputs, other.outputs, strict=True):
            if value not in before or counterpart not in after:
                continue
            decided = dtypes[value].startswith("int") and before[value] != after[counterpart]
            if decided:
                return
            if before[value] is not None and after[counterpart] is not None:
                yield value, counterpart
