"""Functions that live in this process get other code, in place: whoever holds one runs the new code.

Nothing is replaced unless everything can be: what runs now has to be what the source on disk says.
"""

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from magneton.interventions import Edit
from magneton.worker.interventions.refusal import Refusal
from magneton.worker.interventions.rewrite import Place, Rewritten, rewrite

WITHIN = ".<locals>."
CACHED = type(cache(len))


def edit_functions(edits: Sequence[Edit]) -> None:
    """Carry out all of them, file by file, or raise ``Refusal`` for the first that cannot be."""
    if not edits:
        return
    things = _everything()
    functions = [thing for thing in things if type(thing) is FunctionType]
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(_file_of(edit, functions), []).append(edit)
    changes = [change for file, own in by_file.items() for change in _changes(file, own, functions)]
    for function, code in changes:
        function.__code__ = code
    _forget([function for function, _ in changes], things)


def _everything() -> Sequence[object]:
    """Also what no module leads to: decorated functions, closures; and what was frozen after loading."""
    frozen = gc.get_freeze_count() > 0
    if frozen:
        gc.unfreeze()
    found = gc.get_objects()
    if frozen:
        gc.freeze()
    return found


def _forget(functions: Sequence[FunctionType], things: Iterable[object]) -> None:
    """What ``functools`` keeps of their results would hide that they have changed."""
    changed = set(map(id, functions))
    for thing in things:
        # Not isinstance: asking lazy stand-ins for their class would wake them up.
        if type(thing) is CACHED and id(thing.__wrapped__) in changed:
            thing.cache_clear()


def _file_of(edit: Edit, functions: Iterable[FunctionType]) -> str:
    """The one file that the edit means, as code objects spell it."""
    names = _names(edit)
    codes = (function.__code__ for function in functions if function.__code__.co_qualname in names)
    files = sorted({code.co_filename for code in codes if _is_file(code.co_filename, edit.file)})
    if not files:
        raise Refusal(edit.text, "no such function is loaded")
    if len(files) > 1:
        raise Refusal(edit.text, f"it could be in any of {', '.join(files)}")
    return files[0]


def _names(edit: Edit) -> frozenset[str]:
    """The function, and those around it, which make it anew whenever they run."""
    parts = edit.function.split(WITHIN)
    return frozenset(WITHIN.join(parts[: count + 1]) for count in range(len(parts)))


def _is_file(found: str, named: str) -> bool:
    return found == named or (not Path(named).is_absolute() and found.endswith(os.sep + named))


def _changes(
    file: str, edits: Sequence[Edit], functions: Iterable[FunctionType]
) -> Iterator[tuple[FunctionType, CodeType]]:
    wanted = frozenset[str]().union(*map(_names, edits))
    own = [each for each in functions if each.__code__.co_qualname in wanted]
    own = [each for each in own if each.__code__.co_filename == file]
    rewritten = _rewritten(file, edits)
    before, after = dict(_codes(rewritten.before)), dict(_codes(rewritten.after))
    for edit, edited in zip(edits, rewritten.edited, strict=True):
        concerned = [each for each in own if each.__code__.co_qualname in _names(edit)]
        _check(edit, edited, concerned, before, after)
    return ((function, after[_place(function.__code__)]) for function in own)


def _rewritten(file: str, edits: Sequence[Edit]) -> Rewritten:
    try:
        return rewrite(Path(file).read_bytes(), file, edits)
    except OSError:
        raise Refusal(edits[0].text, "its source is not on this machine, or was generated") from None
    except (SyntaxError, ValueError):
        raise Refusal(edits[0].text, "its source is no longer Python") from None


def _check(
    edit: Edit,
    edited: frozenset[Place],
    functions: Sequence[FunctionType],
    before: Mapping[Place, CodeType],
    after: Mapping[Place, CodeType],
) -> None:
    for function in functions:
        place = _place(function.__code__)
        if place not in before or not _same(before[place], function.__code__):
            raise Refusal(edit.text, "what runs is not what its source says: it was changed or generated")
        if after[place].co_freevars != before[place].co_freevars:
            raise Refusal(edit.text, "its closure would change")
    around = any(function.__code__.co_qualname != edit.function for function in functions)
    if not around and not any(_place(function.__code__) in edited for function in functions):
        raise Refusal(edit.text, "no such function is loaded")


def _codes(code: CodeType) -> Iterator[tuple[Place, CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield _place(constant), constant
            yield from _codes(constant)


def _place(code: CodeType) -> Place:
    return Place(code.co_qualname, code.co_firstlineno)


def _same(code: CodeType, other: CodeType) -> bool:
    """Whether both do the same. Comparing code objects would also tell warm ones from cold ones."""
    mine, others = _told(code), _told(other)
    inner = [[each for each in one.co_consts if isinstance(each, CodeType)] for one in (code, other)]
    return mine == others and all(_same(first, second) for first, second in zip(*inner, strict=True))


def _told(code: CodeType) -> tuple[Any, ...]:
    constants = tuple("code" if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, constants, names, _place(code), code.co_argcount, code.co_flags
