"""Find operators of a profile by what people call them: an operator's name or a module's path."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from magneton.profile.model import OpId, Profile
from magneton.workload import Phase

_UNDERSCORES = re.compile(r"(^|\.)_+")  # aten._softmax: the framework's own; people say aten.softmax
_PATTERN = re.compile(r"[*?\[]")


def find_operators(profile: Profile, wanted: str, phase: Phase | None = None) -> tuple[OpId, ...]:
    """Operators whose name or module path is ``wanted``, begins with its parts, or fits it as a pattern.

    ``aten.softmax`` finds ``aten._softmax.default``; ``model.layers.3`` finds all within that module.
    """
    fits = dict[str, bool]()
    return tuple(
        op.op_id
        for op in profile.operators
        if phase in (None, op.phase)
        and any(
            fits[name] if name in fits else fits.setdefault(name, _fits(name, wanted))
            for name in (op.name, op.module_path)
        )
    )


def operator_names(profile: Profile, phase: Phase | None = None) -> tuple[str, ...]:
    """All that ``find_operators`` finds something for, shortest first: names, modules, what holds them."""
    names = {
        name for op in profile.operators if phase in (None, op.phase) for name in (op.name, op.module_path)
    }
    return tuple(
        sorted({part for name in names for part in _openings(name)}, key=lambda name: (len(name), name))
    )


def _openings(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: k + 1]) for k in range(len(parts)) if name)


def _fits(name: str, wanted: str) -> bool:
    plain, sought = (_UNDERSCORES.sub(r"\1", text) for text in (name, wanted))
    if plain != "" and f"{plain}.".startswith(f"{sought}."):
        return True
    return _PATTERN.search(sought) is not None and (fnmatchcase(plain, sought) or fnmatchcase(name, wanted))
