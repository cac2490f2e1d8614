"""Flags of the process and attributes of modules: set, then read again to see whether they hold."""

import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from magneton.interventions import Scalar, SetAttribute, SetFlag
from magneton.worker.interventions.refusal import Refusal

# How frameworks name the functions of a flag that is no attribute: one that sets, one that tells.
ACCESSORS = (("set_{}", "get_{}"), ("enable_{}", "{}_enabled"), ("use_{}", "are_{}_enabled"))


class Setting(NamedTuple):
    change: Callable[[Scalar], object]
    tell: Callable[[], object]


def set_early(flag: SetFlag) -> None:
    """Before the system loads: where what holds the flag is not imported yet, it is set afterwards only."""
    if flag.name.partition(".")[0] in sys.modules:
        set_flag(flag)


def set_flag(flag: SetFlag) -> None:
    owner_name, _, name = flag.name.rpartition(".")
    parts = owner_name.split(".")
    loaded = [count for count in range(len(parts), 0, -1) if ".".join(parts[:count]) in sys.modules]
    if not loaded:
        raise Refusal(flag.text, f"{parts[0] or flag.name} is not imported")
    owner = sys.modules[".".join(parts[: loaded[0]])]
    _set(_setting(_reached(owner, parts[loaded[0] :], flag), name, flag), flag)


def set_attribute(wanted: SetAttribute, roots: Mapping[str, object]) -> None:
    modules = [module for path, module in _modules(roots) if _fits(path, wanted.modules)]
    if not modules:
        raise Refusal(wanted.text, "no module has such a path")
    *through, name = wanted.attribute.split(".")
    for module in modules:
        _set(_setting(_reached(module, through, wanted), name, wanted), wanted)


def _modules(roots: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """By the paths that operators have."""
    for root, thing in roots.items():
        named: Callable[[], Iterator[tuple[str, object]]] | None = getattr(thing, "named_modules", None)
        for name, module in named() if named else ():
            yield ".".join(part for part in (root, name) if part), module


def _fits(path: str, pattern: str) -> bool:
    parts, patterns = path.split("."), pattern.split(".")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _reached(owner: object, path: list[str], wanted: SetFlag | SetAttribute) -> object:
    for name in path:
        try:
            owner = getattr(owner, name)
        except AttributeError:
            raise Refusal(wanted.text, f"there is no {name}") from None
    return owner


def _setting(owner: Any, name: str, wanted: SetFlag | SetAttribute) -> Setting:
    for change, tell in ACCESSORS:
        accessors = getattr(owner, change.format(name), None), getattr(owner, tell.format(name), None)
        if isinstance(wanted, SetFlag) and all(map(callable, accessors)):
            return Setting(*accessors)  # pyright: ignore[reportArgumentType] - both are callable
    held = _held(owner, name, wanted)
    if not isinstance(held, bool | int | float | str | None):
        raise Refusal(wanted.text, f"it is no plain value but a {type(held).__name__}")
    return Setting(partial(setattr, owner, name), partial(getattr, owner, name))


def _held(owner: object, name: str, wanted: SetFlag | SetAttribute) -> object:
    """Owners may compute their attributes, and refuse to."""
    try:
        return getattr(owner, name)
    except AttributeError:
        raise Refusal(wanted.text, f"there is no {name}") from None
    except RuntimeError as error:
        raise Refusal(wanted.text, str(error)) from error


def _set(setting: Setting, wanted: SetFlag | SetAttribute) -> None:
    try:
        setting.change(wanted.value)
        held = setting.tell()
    except Exception as error:
        raise Refusal(wanted.text, f"{type(error).__name__}: {error}") from error
    if type(held) is not type(wanted.value) or held != wanted.value:
        raise Refusal(wanted.text, f"it stays {held!r:.80}")
