"""The layout algebra against tables of numbers: is an answer ever wrong, and how often is there none?

Every case asks one function of ``scalify.layout`` and compares the answer, element by element, with what the
maps say as plain functions. An answer that differs is unsound; None where a map exists is a miss. ``python
benchmarks/layout_fuzz.py [CASES] [SEED]`` writes results/layout_fuzz.json and fails if anything was unsound.
"""

import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from random import Random
from time import process_time

import numpy as np
from random_layouts import LARGEST, Layouts, places, table

from scalify.layout.maps import IndexMap, identity, reshaped, solve, then, transposed
from scalify.layout.views import View, independent_of, narrowed, passes, through, within
from scalify.prove.rules.pieces import united

CASES = 120_000


class Outcome(Counter[str]):
    """How many cases there were of an operation, how many were answered, missed, or answered wrongly."""

    def note(self, *, answered: bool, right: bool = True, exists: bool = False) -> None:
        """One case. ``exists`` says that there is an answer, if none was given."""
        self["cases"] += 1
        self["expressible"] += answered
        self["unsound"] += answered and not right
        self["missed"] += exists and not answered


Operation = Callable[[Layouts], Iterator[tuple[bool, bool, bool]]]
"""Cases of one operation: whether it answered, whether rightly, whether an answer is known to exist."""


def fuzz(cases: int, seed: int) -> Mapping[str, Outcome]:
    """Ask every operation in turn until there are so many cases."""
    layouts = Layouts(Random(seed))
    outcomes = {name: Outcome() for name in OPERATIONS}
    while sum(outcome["cases"] for outcome in outcomes.values()) < cases:
        for name, operation in OPERATIONS.items():
            for answered, right, exists in operation(layouts):
                outcomes[name].note(answered=answered, right=right, exists=exists)
    return outcomes


def _then(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    """Chains of movements; the table is carried along even where the chain was cut."""
    current = identity(layouts.shape())
    expected = table(current)
    for _ in range(layouts.rng.randint(2, 6)):
        step = layouts.movement(current.domain)
        if step is None or prod(step.domain) > LARGEST:
            continue
        expected = expected.reshape(-1)[table(step)]
        longer = then(step, current)
        yield longer is not None, longer is not None and np.array_equal(table(longer), expected), False
        if longer is None:
            return
        current = longer


def _reshaped(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    shape = layouts.shape()
    target = layouts.factors(prod(shape))
    index = reshaped(shape, target)
    right = index is not None and np.array_equal(table(index).reshape(-1), np.arange(prod(shape)))
    yield index is not None, right, False


def _transposed(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    shape = layouts.shape()
    perm = [*range(len(shape))]
    layouts.rng.shuffle(perm)
    numbers = np.arange(prod(shape)).reshape(shape)
    yield True, np.array_equal(table(transposed(shape, perm)), numbers.transpose(perm)), True


def _solve(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    """Given maps of one domain and what is read through them: through which map of the domain?"""
    domain = layouts.shape()
    count = layouts.rng.choice((1, 1, 2, 3))
    given = [layouts.reader(domain) for _ in range(count)]
    hidden = layouts.chain(domain)
    wanted = [then(hidden, index) for index in given]
    if layouts.rng.random() < 0.1:
        wanted[-1] = layouts.reader(hidden.domain)
    known = [index for index in wanted if index is not None]
    if len(known) < count or any(w.codomain != g.codomain for w, g in zip(known, given, strict=True)):
        return
    answer = solve(known, given)
    pairs = np.stack([table(index).reshape(-1) for index in given])
    is_injective = np.unique(pairs, axis=1).shape[1] == prod(domain)
    is_right = answer is not None and _solves(answer, known, given)
    yield (
        answer is not None,
        is_right,
        is_injective and all(then(hidden, g) == w for g, w in zip(given, known, strict=True)),
    )


def _solves(answer: IndexMap, wanted: list[IndexMap], given: list[IndexMap]) -> bool:
    found = table(answer)
    return bool((found >= 0).all()) and all(
        np.array_equal(table(g).reshape(-1)[found], table(w)) for w, g in zip(wanted, given, strict=True)
    )


def _within(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    access = layouts.chain(layouts.shape())
    window = tuple(
        (start := layouts.rng.randint(0, n - 1), layouts.rng.randint(1, n - start)) for n in access.domain
    )
    try:
        inner = within(access, window)
    except ValueError:
        yield False, True, False
        return
    box = tuple(slice(start, start + size) for start, size in window)
    yield True, np.array_equal(table(inner), table(access)[box]), True


def _narrowed(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    view = layouts.view(layouts.shape())
    window: list[tuple[int, int]] = []
    for start, size in view.window:
        first = layouts.rng.randint(0, size - 1) if layouts.rng.random() < 0.4 else 0
        window.append((start + first, layouts.rng.randint(1, size - first) if first else size))
    answer = narrowed(view, tuple(window))
    yield answer is not None, answer is not None and _says_no_more(answer, view), False


def _says_no_more(answer: View, view: View) -> bool:
    """Whether a view is part of what another says."""
    if (answer.scale, answer.partial, answer.shape) != (view.scale, view.partial, view.shape):
        return False
    if answer.partial is not None and answer.window[0] != (0, answer.shape[0]):
        return False
    box = tuple(
        slice(start - outer, start - outer + size)
        for (start, size), (outer, _) in zip(answer.window, view.window, strict=True)
    )
    return np.array_equal(table(answer.index), table(view.index)[box])


def _through(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    access = layouts.chain(layouts.shape())
    view = layouts.view(access.codomain)
    answer = through(view, access)
    yield answer is not None, answer is not None and _reads(answer, access, view), False


def _reads(answer: View, access: IndexMap, view: View) -> bool:
    """Whether a reader through ``access`` sees, in the answer's window, what the view says."""
    if (answer.scale, answer.partial, answer.shape) != (view.scale, view.partial, access.domain):
        return False
    box = tuple(slice(start, start + size) for start, size in answer.window)
    read = [place[box] for place in places(access)]
    inside = [place - start for place, (start, _) in zip(read, view.window, strict=True)]
    for place, (_, size) in zip(inside, view.window, strict=True):
        if (place < 0).any() or (place >= size).any():
            return False
    if not np.array_equal(table(answer.index), table(view.index)[tuple(inside)]):
        return False
    return answer.partial is None or (
        answer.window[0] == (0, answer.shape[0]) and _same_groups(access, answer.partial.digits)
    )


def _same_groups(access: IndexMap, digits: tuple[tuple[int, int], ...]) -> bool:
    """Whether ranks that differ in the digits only read the same place of ranks that differ so."""
    ranks = np.arange(access.domain[0])
    rank, *rest = places(access)
    for stride, size in digits:
        for step in range(1, size):
            digit = ranks // stride % size
            other = ranks + ((digit + step) % size - digit) * stride
            there = rank // stride % size
            moved = rank + ((there + step) % size - there) * stride
            if not np.array_equal(rank[other], moved):
                return False
            if any(not np.array_equal(place[other], place) for place in rest):
                return False
    return True


def _united(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    """Two neighbouring windows of one map, or of two."""
    view = layouts.view(layouts.shape())
    dim = layouts.rng.randrange(len(view.shape))
    start, size = view.window[dim]
    if size < 2:
        return
    cut = layouts.rng.randint(1, size - 1)
    parts = [
        narrowed(view, (*view.window[:dim], piece, *view.window[dim + 1 :]))
        for piece in ((start, cut), (start + cut, size - cut))
    ]
    known = [part for part in parts if part is not None]
    if len(known) < 2:
        return
    first, second = known
    if layouts.rng.random() < 0.3:
        other = layouts.view(view.shape)
        if other.index.codomain == view.index.codomain:
            moved = narrowed(other, second.window)
            second = moved or second
    answer = united(first, second)
    right = answer is not None and all(_says_no_more(part, answer) for part in (first, second))
    yield answer is not None, right and answer is not None and answer.window == view.window, False


def _passes(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    access = layouts.chain(layouts.shape())
    digits = layouts.digits(min(access.domain[0], access.codomain[0]))
    if access.domain[0] == access.codomain[0] and digits:
        yield (answer := passes(access, digits)), answer and _same_groups(access, digits), False


def _independent(layouts: Layouts) -> Iterator[tuple[bool, bool, bool]]:
    index = layouts.reader(layouts.shape())
    digits = layouts.digits(index.domain[0])
    if not digits:
        return
    answer = independent_of(index, digits)
    ranks = np.arange(index.domain[0])
    flat = table(index)
    base = ranks - sum(ranks // stride % size * stride for stride, size in digits)
    is_so = np.array_equal(flat[base], flat)
    yield answer, is_so, False


OPERATIONS: Mapping[str, Operation] = {
    "then": _then,
    "reshaped": _reshaped,
    "transposed": _transposed,
    "solve": _solve,
    "within": _within,
    "narrowed": _narrowed,
    "through": _through,
    "united": _united,
    "passes": _passes,
    "independent": _independent,
}


def main() -> None:
    """Run, print and write."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    start_s = process_time()
    outcomes = fuzz(cases, seed)
    total: Counter[str] = sum(outcomes.values(), Counter())
    made_by = {
        "script": "benchmarks/layout_fuzz.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "seed": seed,
        "cpu_s": round(process_time() - start_s, 1),
    }
    names = ("cases", "expressible", "unsound", "missed")
    figures = {name: total[name] for name in names}
    by_operation = {name: {key: outcome[key] for key in names} for name, outcome in outcomes.items()}
    result = {"made_by": made_by, **figures, "by_operation": by_operation}
    text = json.dumps(result, indent=2) + "\n"
    print(text)
    place = Path(__file__).parent / "results" / "layout_fuzz.json"
    place.write_text(text, encoding="utf-8")
    sys.exit(1 if total["unsound"] else 0)


if __name__ == "__main__":
    main()
