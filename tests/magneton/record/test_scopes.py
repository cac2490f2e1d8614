"""Which scope is running, from the functions on the stack."""

import inspect
from collections.abc import Mapping
from types import FrameType

from magneton.record.scopes import Scopes


def note(seen: list[FrameType]) -> None:
    """The frame that called this."""
    here = inspect.currentframe()
    assert here is not None and here.f_back is not None
    seen.append(here.f_back)


class Engine:
    def schedule(self, seen: list[FrameType]) -> None:
        note(seen)

    def step(self, seen: list[FrameType]) -> None:
        note(seen)
        self.schedule(seen)


def looked_at(table: Mapping[str, str]) -> list[str]:
    seen: list[FrameType] = []
    Engine().step(seen)
    return [Scopes(table).of(frame) for frame in seen]


def test_the_innermost_function_that_has_a_scope_decides():
    table = {"Engine.step": "engine loop", "Engine.schedule": "scheduling"}
    assert looked_at(table) == ["engine loop", "scheduling"]
    assert looked_at({"Engine.step": "engine loop"}) == ["engine loop", "engine loop"]


def test_functions_are_known_by_their_qualified_name():
    assert looked_at({"schedule": "scheduling", "Other.step": "engine loop"}) == ["", ""]
    assert looked_at({}) == ["", ""]


def test_what_is_further_out_than_asked_does_not_count():
    seen: list[FrameType] = []
    Engine().step(seen)
    outer, inner = seen
    scopes = Scopes({"Engine.step": "engine loop"})

    assert scopes.of(inner, outermost=outer) == "engine loop"
    assert scopes.of(inner, outermost=inner) == ""
    assert scopes.of(None) == ""
