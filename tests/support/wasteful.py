"""Small programs as a recording shows them, written down operator by operator, to plant waste in."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from profiles import a_value, an_operator, an_origin

from magneton.audit.model import Sighting
from magneton.audit.step import Step, step_of
from magneton.profile.model import (
    Effect,
    Frame,
    KeyId,
    Operator,
    OpId,
    Profile,
    ReplayKey,
    Role,
    Stack,
    StackId,
    Value,
    ValueId,
)
from magneton.profile.sketches import stack_sketches
from magneton.workload import CALL, Phase, Workload

LINES = 64


class Program:
    """Calls add operators and give the ids of what they make; positions are op ids."""

    def __init__(self, phase: Phase = CALL, phases: Sequence[Phase] = (CALL,)) -> None:
        self._phase, self._phases = phase, tuple(phases)
        self.operators: list[Operator] = []
        self.values: list[Value] = []

    def given(self, *shape: int, role: Role = "input", name: str = "", dtype: str = "float32") -> int:
        return self._value(shape, dtype, None, len(self.values), role=role, name=name)

    def op(
        self,
        name: str,
        *reads: int,
        shape: Sequence[int],
        effect: Effect = "compute",
        into: int | None = None,
        attributes: str = "{}",
        module: str = "model",
        line: int = 0,
        dtype: str = "float32",
    ) -> int:
        """``into``: overwrites that value. A view shares the memory of what it reads first."""
        at = len(self.operators)
        shared = into if into is not None else reads[0] if effect == "view" and reads else None
        storage = len(self.values) if shared is None else self.values[shared].storage_id
        made = self._value(shape, dtype, at, storage)
        self.operators.append(
            an_operator(
                at,
                phase=self._phase,
                name=f"aten.{name}",
                inputs=tuple(map(ValueId, (*reads, *([] if into is None else [into])))),
                outputs=(ValueId(made),),
                mutated=() if into is None else (ValueId(made),),
                attributes=attributes,
                module_path=module,
                stack_id=StackId(line),
                effect=effect,
            )
        )
        return made

    def view(self, name: str, read: int, shape: Sequence[int], attributes: str = "{}", line: int = 0) -> int:
        return self.op(name, read, shape=shape, effect="view", attributes=attributes, line=line)

    def step(self, *outputs: int) -> Step:
        arrays = {
            f"{self._phase}.{place}": np.zeros(self.values[value].shape)
            for place, value in enumerate(outputs)
        }
        profile = Profile(
            origin=an_origin(workload=Workload(phases=self._phases)),
            operators=tuple(self.operators),
            values=tuple(self.values),
            sketches=stack_sketches([None] * len(self.values)),
            stacks=tuple(_line(number) for number in range(LINES)),
            keys=(ReplayKey(key_id=KeyId(0), skipped=None),),
            outputs=arrays,
        )
        return step_of(profile, self._phase)

    def _value(self, shape: Sequence[int], dtype: str, at: int | None, storage: int, **known: Any) -> int:
        producer = None if at is None else OpId(at)
        number = len(self.values)
        self.values.append(
            a_value(number, shape=tuple(shape), dtype=dtype, producer=producer, storage_id=storage, **known)
        )
        return number


def seen(detector: Callable[[Step], Iterator[Sighting]], step: Step) -> list[list[int]]:
    return [sorted(int(op) for op in sighting.operators) for sighting in detector(step)]


def clean_chain(program: Program, value: int, lines: Sequence[int], *, width: int = 6) -> int:
    """Layers with weights of their own, one after the other: nothing to complain about."""
    for layer, line in enumerate(lines):
        weight = program.given(width, width, role="parameter", name=f"w{layer}")
        seen_from_behind = program.view("t.default", weight, (width, width))
        rows = program.values[value].shape[0]
        module = f"model.layers.{layer}"
        value = program.op(
            "mm.default", value, seen_from_behind, shape=(rows, width), module=module, line=line
        )
        value = program.op("tanh.default", value, shape=(rows, width), module=module, line=line)
    return value


def _line(number: int) -> Stack:
    return Stack(frames=(Frame(file="model.py", line=number, function="forward", code=f"line {number}"),))
