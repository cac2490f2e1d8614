"""Random programs of views and writes, against an oracle that copies every tensor at every operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.profile.model import Operator, Profile
from magneton.record.sketching import sketch_array
from magneton.record.torch.capture import trace_callable

OVERWRITING = ("copy_", "fill_", "zero_")  # their target's old content does not matter


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A tensor as an operator found it, and which operators had last written its elements."""

    content: np.ndarray
    writers: frozenset[int]
    needed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator as the oracle saw it."""

    reads: tuple[Read, ...]
    after: tuple[np.ndarray, ...]  # results
    view: bool


class Oracle(TorchDispatchMode):
    """Copies all that goes in and out of each operator; knows the last writer of each element."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self._writers: dict[int, np.ndarray] = {}
        self._alive: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func._schema.name.removeprefix("aten::")
        given_tensors = [t for t in _flat((args, kwargs or {})) if isinstance(t, Tensor)]
        reads = tuple(
            Read(
                content=t.detach().clone().numpy(),
                writers=frozenset(self._last_writers(t)),
                needed=not (place == 0 and name in OVERWRITING),
            )
            for place, t in enumerate(given_tensors)
        )
        result = func(*args, **(kwargs or {}))
        results = [t for t in _flat(result) if isinstance(t, Tensor)]
        known = {t.untyped_storage().data_ptr() for t in given_tensors}
        fresh = [t for t in results if t.untyped_storage().data_ptr() not in known]
        for tensor in fresh + (given_tensors[:1] if name.endswith("_") else []):
            self._written(tensor)
        self._alive += results
        after = tuple(t.detach().clone().numpy() for t in results)
        view = not fresh and not name.endswith("_")
        self.steps.append(Step(reads=reads, after=after, view=view))
        return result

    def _last_writers(self, tensor: Tensor) -> set[int]:
        return {int(writer) for writer in self._window(tensor).reshape(-1) if writer >= 0}

    def _written(self, tensor: Tensor) -> None:
        self._window(tensor)[...] = len(self.steps)

    def _window(self, tensor: Tensor) -> np.ndarray:
        """The last writers of the elements that ``tensor`` shows; no program here changes a view's dtype."""
        storage = tensor.untyped_storage()
        elements = storage.nbytes() // tensor.element_size()
        whole = self._writers.setdefault(storage.data_ptr(), np.full(elements, -1))
        strides = tuple(8 * stride for stride in tensor.stride())
        return np.lib.stride_tricks.as_strided(whole[tensor.storage_offset() :], tuple(tensor.shape), strides)


def _flat(thing: object) -> list[object]:
    if isinstance(thing, list | tuple):
        return [leaf for member in thing for leaf in _flat(member)]
    if isinstance(thing, dict):
        return [leaf for member in thing.values() for leaf in _flat(member)]
    return [thing]


def overwrite_row(t: Tensor, k: int) -> None:
    t[k % t.shape[0]].copy_(t.mean(0))


# What a line of a program does with one of its tensors, [rows, columns], and a number.
MAKING: Mapping[str, Callable[[Tensor, int], Tensor]] = {
    "rows": lambda t, k: t[k % 2 :],
    "columns": lambda t, k: t[:, k % 2 :: 2],
    "transpose": lambda t, k: t.t(),
    "alias": lambda t, k: t.detach(),
    "regroup": lambda t, k: t.reshape(1, -1),
    "expand": lambda t, k: t[:1].expand(3, -1),
    "shift": lambda t, k: t + (k + 1),
    "contract": lambda t, k: t @ t.t(),
    "join": lambda t, k: torch.cat([t, t[:1]]),
}
WRITING: Mapping[str, Callable[[Tensor, int], object]] = {
    "add_": lambda t, k: t.add_(k + 1),
    "scale_": lambda t, k: t.mul_(1.5),
    "fill_": lambda t, k: t[:1].fill_(k),
    "zero_": lambda t, k: t[:, :1].zero_(),
    "mask_": lambda t, k: t.masked_fill_(t > k, -1.0),
    "row_": overwrite_row,
}
DROP = "drop"
LINES = st.tuples(st.sampled_from((*MAKING, *WRITING, DROP)), st.integers(0, 9), st.integers(0, 9))
PROGRAMS = st.lists(LINES, max_size=14)


def perform(program: Sequence[tuple[str, int, int]], x: Tensor) -> None:
    """Run a program on ``x * 2`` and on whatever it makes of that."""
    tensors = [x * 2]
    for action, which, number in program:
        tensor = tensors[which % len(tensors)]
        if action == DROP:
            tensors = [t for t in tensors if t is not tensor] or [tensor]
        elif action in MAKING:
            made = MAKING[action](tensor, number)
            tensors += [made] if 0 < made.numel() < 200 else []
        elif 0 not in tensor.stride():
            WRITING[action](tensor, number)


@settings(max_examples=60)
@given(program=PROGRAMS)
def test_every_value_is_what_was_there(program: list[tuple[str, int, int]]):
    profile, steps = run(program)
    assert len(profile.operators) == len(steps)
    for operator, step in zip(profile.operators, steps, strict=True):
        check_results(profile, operator, step)
        if not step.view:
            check_reads(profile, operator, step)


def run(program: Sequence[tuple[str, int, int]]) -> tuple[Profile, list[Step]]:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), Oracle() as oracle:
        profile = trace_callable(lambda: perform(program, x), ())
    return profile, oracle.steps


def check_results(profile: Profile, operator: Operator, step: Step) -> None:
    for value_id, content in zip(operator.outputs, step.after, strict=False):
        assert profile.values[value_id].producer == operator.op_id
        assert holds(profile, value_id, content)


def check_reads(profile: Profile, operator: Operator, step: Step) -> None:
    """Each tensor that was read is an input that holds what was there and depends on all who wrote it."""
    candidates = list(operator.inputs)
    for read in (read for read in step.reads if read.needed):
        while candidates:
            value_id = candidates.pop(0)
            if holds(profile, value_id, read.content):
                break
        else:
            pytest.fail(f"{operator.name} read {read.content}, which is none of its inputs")
        assert read.writers <= origins(profile, value_id)


def holds(profile: Profile, value_id: int, content: np.ndarray) -> bool:
    expected, table = sketch_array(content), profile.sketches
    if expected is None or not table.known[value_id]:
        return expected is None and not table.known[value_id]
    return (
        profile.values[value_id].shape == content.shape
        and table.count[value_id] == expected.count
        and table.rms[value_id] == pytest.approx(expected.rms, rel=1e-5)
        and tuple(table.projection[value_id]) == pytest.approx(expected.projection, rel=1e-4, abs=1e-4)
        and (
            table.first[value_id] != expected.first
            or tuple(table.cos_sum[value_id]) == pytest.approx(expected.cos_sum, abs=1e-3)
        )
    )


def origins(profile: Profile, value_id: int) -> set[int]:
    """All operators that a value depends on."""
    found: set[int] = set()
    waiting = [value_id]
    while waiting:
        producer = profile.values[waiting.pop()].producer
        if producer is not None and producer not in found:
            found.add(int(producer))
            waiting += profile.operators[producer].inputs
    return found


@settings(max_examples=20)
@given(program=PROGRAMS)
def test_ids_are_row_numbers_and_every_output_has_its_producer(program: list[tuple[str, int, int]]):
    profile, _ = run(program)
    assert [value.value_id for value in profile.values] == list(range(len(profile.values)))
    assert [op.op_id for op in profile.operators] == list(range(len(profile.operators)))
    produced = {value: op.op_id for op in profile.operators for value in op.outputs}
    assert produced == {v.value_id: v.producer for v in profile.values if v.producer is not None}
    for operator in profile.operators:
        assert set(operator.mutated) <= set(operator.outputs)
        earlier = [profile.values[value].producer for value in operator.inputs]
        assert all(producer is None or producer < operator.op_id for producer in earlier)
