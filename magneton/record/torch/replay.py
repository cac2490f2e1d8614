"""The replay pass: the energy of each class of operators, read while one step runs on its real inputs.

In: the keys that the dataflow pass found, and one re-run of the step under ``ReplayMode``. Out: readings per
key and reasons for the keys that have none. How a key is read depends on the meter: in place where its
clock is fine enough for one operator (``in_place``), by repetition where it is not (``looping``). Either
way the step computes bit for bit what it computes alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch.utils._python_dispatch import TorchDispatchMode

from magneton.profile.model import KeyId, Operator, ReplayReading
from magneton.record.torch.attributes import attributes_json
from magneton.record.torch.calls import inspect_call, signature_of
from magneton.record.torch.cutting import Cutting
from magneton.record.torch.keys import operator_key
from magneton.record.torch.opening import Openings


class KeyReader(Protocol):
    """Runs an operator once for the step, and reads its energy by the way."""

    def execute(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any: ...

    def readings(self, round: int) -> Iterator[ReplayReading]: ...

    def skipped(self) -> Mapping[KeyId, str]: ...


class ReplayMode(TorchDispatchMode):
    """Hands each operator whose key was traced to ``reader``; counts those that were not."""

    supports_higher_order_operators = True

    def __init__(
        self,
        key_ids: Mapping[str, KeyId],
        reader: KeyReader,
        key_of: Callable[[Any, Sequence[Any], Mapping[str, Any]], str] = operator_key,
        openings: Openings | None = None,
        traced: Sequence[Operator] = (),
    ) -> None:
        super().__init__()
        self._key_ids = key_ids
        self._traced = traced
        self._reader = reader
        self._key_of = key_of
        self._openings = Openings() if openings is None else openings
        self._cutting = Cutting()
        self.executed = 0
        self.strangers = 0

    def _at(self, place: int, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> KeyId | None:
        """The key of the operator that was traced at this place of the step, if it differs in content only.

        An engine's counters go on from step to step: their content is part of a key and never met again.
        """
        if place >= len(self._traced):
            return None
        traced, call = self._traced[place], inspect_call(func, args, kwargs)
        same = traced.name == str(func) and traced.attributes == attributes_json(call.given)
        return traced.key_id if same else None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if signature_of(func).decomposes:  # cut as the dataflow pass cuts, or no key is met again
            return self._cutting.parts(self, func, args, kwargs)
        inside = self._openings.inside(func, args, kwargs)
        if inside is not None:
            with self:
                return inside(*args, **kwargs)
        key_id = self._key_ids.get(self._key_of(func, args, kwargs))
        if key_id is None:
            key_id = self._at(self.executed, func, args, kwargs)
        self.executed += 1
        if key_id is None:
            self.strangers += 1
            return self._cutting.part(func, args, func(*args, **kwargs))
        return self._cutting.part(func, args, self._reader.execute(key_id, func, args, kwargs))
