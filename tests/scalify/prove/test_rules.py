"""Every rule concludes only what holds: a thousand random instances each, and wrong rules are noticed."""

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from rule_experiments import EXPERIMENTS, Experiment, Rule, of_counterpart, of_over_ranks, of_united
from rule_instances import Source

from scalify.layout.digits import Expr, Term, summed
from scalify.layout.maps import IndexMap
from scalify.layout.views import RankDigits, View, through
from scalify.prove import rules
from scalify.prove.encoding import program
from scalify.prove.rules.counterpart import Reading, counterpart
from scalify.prove.rules.ranks import over_ranks

INSTANCES = 1_000
MOST_DRAWS = 40_000


def outcomes(experiment: Experiment, rule: Rule, wanted: int, seed: int = 0) -> Counter[bool]:
    """How many conclusions were right and how many wrong, once there are so many."""
    source = Source(Random(seed))
    found: Counter[bool] = Counter()
    for _ in range(MOST_DRAWS):
        answer = experiment(source, rule)
        if answer is not None:
            found[answer] += 1
        if found.total() == wanted:
            break
    return found


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_what_a_rule_concludes_holds(name: str) -> None:
    assert outcomes(*EXPERIMENTS[name], INSTANCES) == {True: INSTANCES}


def test_every_rule_has_an_experiment() -> None:
    functions = {
        name
        for module in pkgutil.iter_modules(rules.__path__, "scalify.prove.rules.")
        for name, member in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction)
        if member.__module__ == module.name and not name.startswith("_")
    }
    assert functions <= set(EXPERIMENTS)


def test_every_rule_of_the_engine_has_an_experiment() -> None:
    """By name, without the number of operands or the operation at its end."""
    names = re.findall(r':ruleset views :name "([a-z-]+?)[0-9]*"', program())
    known = {name.replace("_", "-") for name in EXPERIMENTS}
    assert len(names) > 10
    assert {re.sub("^commuted-.*", "commuted", name) for name in names} <= known


def without_partial(op: str, readings: Sequence[Reading], *rest: object) -> View | None:
    """Wrong: a pending sum is taken through any operation, as if it were the value."""
    pending = [reading.view.partial for reading in readings]
    plain = [Reading(access, replace(view, partial=None)) for access, view in readings]
    answer = counterpart(op, plain, *rest)  # type: ignore[arg-type]
    return None if answer is None else replace(answer, partial=next(filter(None, pending), answer.partial))


def without_scale(op: str, readings: Sequence[Reading], *rest: object) -> View | None:
    """Wrong: scales are forgotten."""
    plain = [Reading(access, replace(view, scale=Fraction(1))) for access, view in readings]
    return counterpart(op, plain, *rest)  # type: ignore[arg-type]


def first_operand_only(
    op: str, readings: Sequence[Reading], reduced: int, given: Sequence[IndexMap], given_reduced: int
) -> View | None:
    """Wrong: the map that explains the first operand is taken for all."""
    seen = through(readings[0].view, readings[0].access)
    if seen is None or op not in ("add", "mul", "max") or not seen.is_whole:
        return None
    again = [readings[0]] * len(readings)
    return counterpart(op, again, reduced, [given[0]] * len(given), given_reduced)


def without_group_size(kind: str, digits: RankDigits, reading: Reading) -> View | None:
    """Wrong: a sum of equal values is the value."""
    answer = over_ranks(kind, digits, reading)
    view = through(reading.view, reading.access)
    return None if answer is None or view is None else replace(answer, scale=view.scale)


def without_kind(kind: str, digits: RankDigits, reading: Reading) -> View | None:
    """Wrong: any combination settles any other."""
    partial = reading.view.partial
    return over_ranks(partial.kind if partial is not None else kind, digits, reading)


def unchecked(first: View, second: View) -> View | None:
    """Wrong: two windows that meet are one, whatever they are views of."""
    apart = [dim for dim in range(len(first.shape)) if first.window[dim] != second.window[dim]]
    if len(apart) != 1 or first.shape != second.shape:
        return None
    (dim,) = apart
    (start, size), (_, rest) = first.window[dim], second.window[dim]
    domain = (*first.index.domain[:dim], size + rest, *first.index.domain[dim + 1 :])
    longer = tuple(_longer(expr, dim, size + rest) for expr in first.index.coordinates)
    window = (*first.window[:dim], (start, size + rest), *first.window[dim + 1 :])
    return replace(first, window=window, index=IndexMap(domain, first.index.codomain, longer))


def _longer(expr: Expr, dim: int, size: int) -> Expr:
    terms = [Term(dim, 1, size, t.factor) if t.dim == dim and t.stride == 1 else t for t in expr.terms]
    return summed(expr.offset, terms)


@pytest.mark.parametrize(
    ("experiment", "rule"),
    [
        (of_counterpart, without_partial),
        (of_counterpart, without_scale),
        (of_counterpart, first_operand_only),
        (of_over_ranks, without_group_size),
        (of_over_ranks, without_kind),
        (of_united, unchecked),
    ],
)
def test_a_wrong_rule_is_noticed(experiment: Experiment, rule: Rule) -> None:
    source = Source(Random(0))
    assert any(experiment(source, rule) is False for _ in range(MOST_DRAWS))
