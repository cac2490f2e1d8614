"""Which work a set of operators is, and on which line it was asked for."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from magneton.compare.model import ValuePlace, Work
from magneton.profile.model import Frame, Operator, OpId, Profile, Stack, ValueId

# The tensor library's own files: the line to look at lies outside.
_FRAMEWORK = re.compile(
    r"((^|[/\\])(site|dist)-packages[/\\]|^)(torch|torchgen|functorch)[/\\]|[/\\]torch[/\\]nn[/\\]"
)
_OWN = re.compile(r"(^|[/\\])magneton[/\\](record|worker|systems|meters)[/\\]")
_DIGITS = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"(?:(?<=\.)|^)([0-9]{1,9})(?=\.|$)")  # a path's part that is a number: a repeated layer


def describe_work(
    profile: Profile, repetitions: Sequence[Sequence[OpId]], weight: Callable[[OpId], tuple[float, ...]]
) -> Work:
    """The work of a row: ``repetitions`` hold equal operators each, one per repeated layer or step.

    ``weight`` is larger for an operator that costs more: the first line to look at.
    """
    operators = profile.operators
    costliest_first = sorted(repetitions[0], key=weight, reverse=True)
    names = Counter(operators[op].name for op in costliest_first)
    stack = profile.stacks[operators[costliest_first[0]].stack_id]
    return Work(
        operators=tuple(names.items()),
        module_path=merge_paths(_module(operators, repetition) for repetition in repetitions),
        source=source_line(stack),
        chain=stack.frames,
    )


def _module(operators: Sequence[Operator], repetition: Sequence[OpId]) -> str:
    """The innermost module that all operators of one repetition lie in; outside any, their scopes."""
    found = dict.fromkeys(operators[op].module_path for op in repetition)
    scopes = {operators[op].scope for op in repetition}
    paths = [path.split(".") for path in found if path and path not in scopes]
    if not paths:
        return ", ".join(path for path in found if path)
    shared = paths[0]
    for path in paths[1:]:
        equal = (one == other for one, other in zip(shared, path, strict=False))
        length = next((i for i, same in enumerate(equal) if not same), min(len(shared), len(path)))
        shared = shared[:length]
    return ".".join(shared)


def any_layer(path: str) -> str:
    """A module's path with its numbers left open, equal for equal modules of repeated layers."""
    return _DIGITS.sub("#", path)


def merge_paths(paths: Iterable[str]) -> str:
    """``layers.0.mlp, layers.1.mlp, layers.3.mlp`` as ``layers.0-1,3.mlp``; other paths are listed."""
    numbers: dict[tuple[str, ...], tuple[set[int], ...]] = {}
    for path in paths:
        pieces = _NUMBER.split(path)
        between, found = tuple(pieces[::2]), pieces[1::2]
        seen = numbers.setdefault(between, tuple(set[int]() for _ in found))
        for place, number in zip(seen, found, strict=True):
            place.add(int(number))
    merged = [
        between[0] + "".join(_ranges(place) + text for place, text in zip(places, between[1:], strict=True))
        for between, places in numbers.items()
    ]
    shown = [path for path in merged if path]
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _ranges(numbers: set[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def source_line(stack: Stack) -> Frame | None:
    """The innermost frame of user or framework code; one of ours only where there is no other."""
    outside = [frame for frame in reversed(stack.frames) if not _FRAMEWORK.search(frame.file)]
    foreign = (frame for frame in outside if not _OWN.search(frame.file))
    return next(foreign, outside[0] if outside else None)


def place_value(profile: Profile, value_id: ValueId) -> ValuePlace:
    """A value with the operator, module and line that made it."""
    value = profile.values[value_id]
    producer = None if value.producer is None else profile.operators[value.producer]
    return ValuePlace(
        name=value.name,
        role=value.role,
        shape=value.shape,
        dtype=value.dtype,
        producer="" if producer is None else producer.name,
        module_path="" if producer is None else producer.module_path,
        source=None if producer is None else source_line(profile.stacks[producer.stack_id]),
    )
