"""NumPy programs recorded as profiles: for matching tests without a framework.

    graph = Graph()
    x = graph.input("x", np.ones((2, 4)))
    w = graph.parameter("w", np.eye(4))
    y = graph.op("mm", np.matmul, x, w)
    profile = graph.profile()

Arrays are computed as the program is written down; a ``Ref`` is the value they hold at that moment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from profiles import an_origin

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
from magneton.profile.sketches import Sketch, stack_sketches
from magneton.record.sketching import sketch_array
from magneton.workload import CALL, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A value of the program under construction."""

    value_id: ValueId
    array: Any
    storage_id: int


@dataclass(slots=True)
class Graph:
    """Collects operators and values; ``module`` and ``phase`` hold for the operators that follow."""

    phase: Phase = CALL
    module: str = ""
    operators: list[Operator] = field(default_factory=list[Operator])
    values: list[Value] = field(default_factory=list[Value])
    sketches: list[Sketch | None] = field(default_factory=list[Sketch | None])

    def source(self, role: Role, name: str, array: Any) -> Ref:
        return self._value(np.asarray(array), role=role, name=name)

    def input(self, name: str, array: Any) -> Ref:
        return self.source("input", name, array)

    def parameter(self, name: str, array: Any) -> Ref:
        return self.source("parameter", name, array)

    def buffer(self, name: str, array: Any) -> Ref:
        return self.source("buffer", name, array)

    def op(self, name: str, function: Callable[..., Any], *read: Ref, effect: Effect = "compute") -> Ref:
        (result,) = self.ops(name, lambda *arrays: (function(*arrays),), *read, effect=effect)
        return result

    def ops(
        self,
        name: str,
        function: Callable[..., Sequence[Any]],
        *read: Ref,
        effect: Effect = "compute",
        sketched: bool = True,
    ) -> tuple[Ref, ...]:
        """An operator with several results."""
        at = OpId(len(self.operators))
        storage = read[0].storage_id if effect == "view" else None
        results = tuple(
            self._value(
                np.asarray(array), producer=at, storage=storage, sketched=sketched and effect != "alloc"
            )
            for array in function(*(ref.array for ref in read))
        )
        self._operator(name, read, results, (), effect)
        return results

    def view(self, name: str, function: Callable[..., Any], read: Ref) -> Ref:
        return self.op(name, function, read, effect="view")

    def write(self, name: str, function: Callable[..., Any], target: Ref, *read: Ref) -> Ref:
        """An operator that overwrites ``target``; what is returned holds the new content."""
        at = OpId(len(self.operators))
        array = np.asarray(function(target.array.copy(), *(ref.array for ref in read)))
        result = self._value(array, producer=at, storage=target.storage_id)
        self._operator(name, (target, *read), (result,), (result,), "compute")
        return result

    def sync(self, name: str, read: Ref) -> None:
        self._operator(name, (read,), (), (), "sync")

    def profile(self) -> Profile:
        frame = Frame(file="program.py", line=1, function="forward", code="y = f(x)")
        return Profile(
            origin=an_origin(),
            operators=tuple(self.operators),
            values=tuple(self.values),
            sketches=stack_sketches(self.sketches),
            stacks=(Stack(frames=(frame,)),),
            keys=(ReplayKey(key_id=KeyId(0), skipped=None),),
        )

    def _value(
        self,
        array: Any,
        *,
        role: Role = "activation",
        name: str = "",
        producer: OpId | None = None,
        storage: int | None = None,
        sketched: bool = True,
    ) -> Ref:
        value_id = ValueId(len(self.values))
        storage_id = int(value_id) if storage is None else storage
        self.values.append(
            Value(
                value_id=value_id,
                role=role,
                name=name,
                shape=tuple(array.shape),
                dtype=str(array.dtype),
                producer=producer,
                storage_id=storage_id,
                version=0,
            )
        )
        self.sketches.append(sketch_array(array) if sketched else None)
        return Ref(value_id=value_id, array=array, storage_id=storage_id)

    def _operator(
        self, name: str, read: Sequence[Ref], results: Sequence[Ref], mutated: Sequence[Ref], effect: Effect
    ) -> None:
        self.operators.append(
            Operator(
                op_id=OpId(len(self.operators)),
                phase=self.phase,
                name=name,
                inputs=tuple(ref.value_id for ref in read),
                outputs=tuple(ref.value_id for ref in results),
                mutated=tuple(ref.value_id for ref in mutated),
                attributes="{}",
                module_path=self.module,
                stack_id=StackId(0),
                effect=effect,
                flops=0,
                bytes_moved=0,
                key_id=KeyId(0),
                duration_s=None,
            )
        )
