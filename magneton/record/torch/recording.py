"""One phase of the dataflow pass while it runs.

In: operators, one by one, as the dispatch mode hands them over. Out: a ``Trace``, the rows that the phase
adds to the profile's tables. Rows are final only when the phase is over: a later read through an alias
gives an operator one more output.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor

from magneton.profile.model import Effect, KeyId, Operator, OpId, ReplayKey, Stack, StackId, Value, ValueId
from magneton.profile.sketches import Sketch
from magneton.record.scopes import SCOPES_ROOT, Scopes
from magneton.record.torch.attributes import attributes_json
from magneton.record.torch.calls import Call, effect_of, inspect_call, tensors_in
from magneton.record.torch.counts import count_bytes, count_flops
from magneton.record.torch.hidden import HIDDEN_ROOT, hidden_parameters
from magneton.record.torch.internals import calling_frame, unobserved
from magneton.record.torch.modules import ModulePath
from magneton.record.torch.patches import Pending
from magneton.record.torch.sources import Sources
from magneton.record.torch.stacks import Stacks
from magneton.record.torch.storage import shows_same_elements, shows_same_memory
from magneton.record.torch.values import Values
from magneton.workload import Phase

KeyOf = Callable[[Any, Sequence[Any], Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one phase adds to each table, in order of ids."""

    operators: tuple[Operator, ...]
    values: tuple[Value, ...]
    sketches: tuple[tuple[ValueId, Sketch | None], ...]
    stacks: tuple[Stack, ...]
    keys: tuple[ReplayKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """An operator whose inputs and outputs may still grow."""

    name: str
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    mutated: tuple[ValueId, ...]
    attributes: str
    module_path: str
    scope: str
    stack_id: StackId
    effect: Effect
    flops: int
    bytes_moved: int
    key_id: KeyId


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """An operator that is about to run."""

    func: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    call: Call
    key: str
    inputs: tuple[ValueId, ...]
    pending: tuple[Pending | None, ...]


_Wired = tuple[tuple[ValueId, ...], tuple[ValueId, ...], tuple[ValueId, ...]]  # inputs, outputs, mutated


def _undescribed(name: str, wired: _Wired, effect: Effect) -> _Draft:
    """For a trace of which only values are wanted."""
    return _Draft(
        name=name,
        inputs=wired[0],
        outputs=wired[1],
        mutated=wired[2],
        attributes="{}",
        module_path="",
        scope="",
        stack_id=StackId(0),
        effect=effect,
        flops=0,
        bytes_moved=0,
        key_id=KeyId(0),
    )


class Recording:
    """Collects the operators of one phase; ``trace`` is there once it is over."""

    trace: Trace

    def __init__(
        self,
        *,
        phase: Phase,
        roots: Mapping[str, Any],
        values: Values,
        stacks: Stacks,
        key_ids: dict[str, KeyId],
        key_of: KeyOf,
        first_operator: int,
        outermost: FrameType | None,
        results_only: bool = False,
    ) -> None:
        self.modules = ModulePath(roots)
        self._phase = phase
        self._values = values
        self._stacks = stacks
        self._key_ids = key_ids
        self._key_of = key_of
        self._first_operator = first_operator
        self._outermost = outermost
        self._results_only = results_only
        self._drafts: list[_Draft] = []
        self._had = (len(values.rows), len(stacks.rows), len(key_ids))
        self._packed: Mapping[str, Tensor] = roots.get(HIDDEN_ROOT, {})
        self._scopes = Scopes(roots.get(SCOPES_ROOT, {}))
        values.begin(Sources(roots))

    def observe(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run one operator and write down what it did. What it raises goes on unchanged."""
        met = self._meet(func, args, kwargs)
        result = func(*args, **kwargs)
        self._write_down(met, result)
        return result

    def observe_inside(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], run: Callable[..., Any]
    ) -> tuple[Any, bool]:
        """Run an operator whose insides are observed as well, and say whether they explain all that it made.

        If so it is no operator of its own; else it is written down after those inside it.
        """
        met = self._meet(func, args, kwargs)
        first = self._next_op()
        result = run(*args, **kwargs)
        shown = [t for t in tensors_in(result) if not any(shows_same_memory(t, g) for g in met.call.tensors)]
        explained = all(self._values.made_since(first, tensor) for tensor in (*met.call.written, *shown))
        if not explained:
            self._write_down(met, result)
        return result, explained

    def _meet(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Met:
        """What can only be learnt before the operator runs."""
        call = inspect_call(func, args, kwargs)
        with unobserved("cpu"):
            key = self._key_of(func, args, kwargs)
        for tensor in call.tensors:
            self._values.notice(tensor)
        return _Met(
            func=func,
            args=args,
            kwargs=kwargs,
            call=call,
            key=key,
            inputs=self._read(call) if call.changes_arguments else (),
            pending=self._values.about_to_write(call),
        )

    def _write_down(self, met: _Met, result: Any) -> None:
        call, inputs = met.call, met.inputs
        results = tuple(tensors_in(result))
        bases = self._bases(call, results)
        effect = effect_of(call, results, all_shown=all(base is not None for base in bases))
        if not call.changes_arguments:
            inputs = self._read_behind(call, results) if effect == "view" else self._read(call)
        outputs, mutated = self._write(call, results, bases, effect, met.pending)
        for tensor in (*results, *call.written):
            self._values.notice(tensor)
        wired = (inputs, outputs, mutated)
        self._drafts.append(
            _undescribed(str(met.func), wired, effect)
            if self._results_only
            else self._described(met, result, wired, effect)
        )

    def _described(self, met: _Met, result: Any, wired: _Wired, effect: Effect) -> _Draft:
        inputs, outputs, mutated = wired
        scope = self._scopes.of(calling_frame(), self._outermost)
        return _Draft(
            name=str(met.func),
            inputs=inputs + self._hidden(met.call),
            outputs=outputs,
            mutated=mutated,
            attributes=attributes_json(met.call.given),
            module_path=self.modules.current() or scope,
            scope=scope,
            stack_id=self._stacks.here(self._outermost),
            effect=effect,
            flops=count_flops(met.func, met.call, met.args, met.kwargs, result, effect),
            bytes_moved=count_bytes(met.call, tuple(tensors_in(result)), effect),
            key_id=self._key_id(met.key),
        )

    def close(self) -> None:
        """The phase is over: ``trace`` is final."""
        self._values.end()
        self._outermost = None
        values, stacks, keys = self._had
        self.trace = Trace(
            operators=tuple(self._operator(place, draft) for place, draft in enumerate(self._drafts)),
            values=tuple(self._values.rows[values:]),
            sketches=tuple(
                (row.value_id, self._values.sketches[row.value_id]) for row in self._values.rows[values:]
            ),
            stacks=tuple(self._stacks.rows[stacks:]),
            keys=tuple(
                ReplayKey(key_id=key_id, skipped=None) for key_id in tuple(self._key_ids.values())[keys:]
            ),
        )

    def _key_id(self, key: str) -> KeyId:
        return self._key_ids.setdefault(key, KeyId(len(self._key_ids)))

    def _next_op(self) -> OpId:
        return OpId(self._first_operator + len(self._drafts))

    def _read(self, call: Call) -> tuple[ValueId, ...]:
        """What the call reads. A target whose old content does not matter is an input only where nobody
        computed that content: then it ties the call to what made the memory, and to nothing else."""
        inputs: list[ValueId] = []
        for place, tensor in enumerate(call.tensors):
            if place not in call.unread:
                inputs.append(self._values.read(tensor))
            elif not self._values.holds_result(tensor):
                inputs.append(self._values.read_behind(tensor, (tensor,)))
        return tuple(inputs)

    def _hidden(self, call: Call) -> tuple[ValueId, ...]:
        """Weights that the call uses though it is not given them."""
        if call.signature.is_native:
            return ()
        packed = self._packed.get(self.modules.current())
        found = hidden_parameters(call, calling_frame())
        return tuple(
            self._values.read(tensor) for tensor in (found or ((packed,) if packed is not None else ()))
        )

    def _read_behind(self, call: Call, results: Sequence[Tensor]) -> tuple[ValueId, ...]:
        return tuple(
            self._values.read_behind(tensor, results)
            if any(shows_same_memory(tensor, result) for result in results)
            else self._values.read(tensor)
            for tensor in call.tensors
        )

    def _bases(self, call: Call, results: Sequence[Tensor]) -> list[Tensor | None]:
        """For each result the argument whose memory it shows; itself where the memory was known otherwise."""
        bases: list[Tensor | None] = []
        for result in results:
            base = next((tensor for tensor in call.tensors if shows_same_memory(tensor, result)), None)
            if base is None and self._values.is_known_memory(result):
                base = result
            bases.append(base)
        return bases

    def _write(
        self,
        call: Call,
        results: Sequence[Tensor],
        bases: Sequence[Tensor | None],
        effect: Effect,
        pending: Sequence[Pending | None],
    ) -> tuple[tuple[ValueId, ...], tuple[ValueId, ...]]:
        """All outputs of the call, and those that overwrote an argument."""
        op_id = self._next_op()
        mutated = tuple(
            self._values.overwrite(tensor, op_id, changing)
            for tensor, changing in zip(call.written, pending, strict=True)
        )
        outputs: list[ValueId] = []
        for result, base in zip(results, bases, strict=True):
            again = (v for t, v in zip(call.written, mutated, strict=True) if shows_same_elements(t, result))
            known = next(again, None)
            if known is not None:
                outputs.append(known)
            elif base is not None:
                outputs.append(self._values.view(result, op_id, base))
            else:
                outputs.append(self._values.make(result, op_id, content=effect != "alloc"))
        return tuple(dict.fromkeys((*outputs, *mutated))), tuple(dict.fromkeys(mutated))

    def _operator(self, place: int, draft: _Draft) -> Operator:
        op_id = OpId(self._first_operator + place)
        more_inputs = tuple(
            value_id for value_id in self._values.extra_inputs.get(op_id, ()) if value_id not in draft.inputs
        )
        return Operator(
            op_id=op_id,
            phase=self._phase,
            name=draft.name,
            inputs=draft.inputs + more_inputs,
            outputs=draft.outputs + tuple(self._values.extra_outputs.get(op_id, ())),
            mutated=draft.mutated,
            attributes=draft.attributes,
            module_path=draft.module_path,
            scope=draft.scope,
            stack_id=draft.stack_id,
            effect=draft.effect,
            flops=draft.flops,
            bytes_moved=draft.bytes_moved,
            key_id=draft.key_id,
            duration_s=None,
        )
