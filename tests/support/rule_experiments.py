"""One experiment for every rule of the prover: does what it concludes hold of the values it speaks of?

An experiment draws one instance, asks the rule (or one given in its place) and answers True, False, or None
where the rule concluded nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rule_instances import FOLDS, Joints, Operand, Source, Value, at, groups_of, holds, operation

from scalify.ir.graph import NodeId
from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along
from scalify.layout.views import View, narrowed, through, whole
from scalify.normalize.lower import Lowered
from scalify.normalize.meaning import Values, combined
from scalify.normalize.terms import Access, Terms
from scalify.prove.encoding import COMMUTATIVE
from scalify.prove.region import Goal, RegionTerms, shown
from scalify.prove.rules.counterpart import concluded, counterpart, folded, joint
from scalify.prove.rules.pieces import assembled, completed, piece, united
from scalify.prove.rules.ranks import over_ranks, owned, owners
from scalify.prove.rules.scales import scaled, unscaled

# Rules have different signatures; an experiment calls the one it is about.
Rule = Callable[..., Any]
Experiment = Callable[[Source, Rule], bool | None]


def of_counterpart(source: Source, rule: Rule) -> bool | None:
    case = Joints(source).joint()
    if case is None:
        return None
    view = rule(case.op, case.readings(), case.reduced, case.given, case.given_reduced)
    return None if view is None else holds(view, case.candidate(), case.baseline())


def of_joint(source: Source, rule: Rule) -> bool | None:
    """Of operations that fold nothing and combine nothing, the whole index space is all there is."""
    case = Joints(source).joint()
    if case is None or case.reduced or case.given_reduced or ":" in case.op:
        return None
    view = rule(case.op, case.readings(), case.given)
    return None if view is None else holds(view, case.candidate(), case.baseline())


def of_concluded(source: Source, rule: Rule) -> bool | None:
    """From the view of the whole index space to that of the result."""
    case = Joints(source).joint()
    inner = None if case is None else joint(case.op, case.readings(), case.given)
    if case is None or inner is None:
        return None
    view = rule(case.op, inner, case.reduced, case.given_reduced)
    return None if view is None else holds(view, case.candidate(), case.baseline())


def of_folded(source: Source, rule: Rule) -> bool | None:
    op = source.rng.choice(FOLDS)
    spaces = Joints(source).spaces(folds=True)
    view = whole(spaces.joint, source.scale(), source.partial(spaces.domain[0], spaces.joint))
    baseline = Value(source.values(spaces.given))
    candidate = source.realised(view, baseline)
    if view.scale != 1 and op not in ("sum", "max", "min"):
        return None
    if (op in ("max", "min") and view.scale < 0) or (view.partial is not None and view.partial.kind != op):
        return None
    answer = rule(op, view, spaces.reduced, spaces.given_reduced)
    if answer is None:
        return None
    result = Value(operation(op, [baseline.at(_identity(spaces.given))], spaces.given_reduced))
    return holds(answer, operation(op, [candidate], spaces.reduced), result)


def _identity(shape: Shape) -> IndexMap:
    return IndexMap(shape, shape, tuple(along(dim, size) for dim, size in enumerate(shape)))


def of_over_ranks(source: Source, rule: Rule) -> bool | None:
    operand = source.operand()
    reading = source.reading(operand)
    ranks = reading.access.domain[0]
    pending = operand.view.partial
    digits = pending.digits if pending is not None and source.rng.random() < 0.6 else ()
    seen = through(operand.view, reading.access)
    digits = digits or (source.idle_digits(seen.index) if seen is not None else ())
    if not digits or any(ranks % (stride * size) for stride, size in digits):
        return None
    kind = pending.kind if pending is not None and source.rng.random() < 0.8 else source.rng.choice(FOLDS)
    view = rule(kind, digits, reading)
    if view is None:
        return None
    return holds(view, combined(at(operand.candidate, reading.access), kind, digits), operand.baseline)


def of_owned(source: Source, rule: Rule) -> bool | None:
    operand = source.operand()
    reading = source.reading(operand)
    ranks = np.arange(reading.access.domain[0])
    seen = through(operand.view, reading.access)
    digits = source.idle_digits(seen.index) if seen is not None else ()
    if not digits or len(ranks) % (digits[-1][0] * digits[-1][1]):
        return None
    owner = ranks >= 0
    for stride, size in digits:
        owner = owner & (ranks // stride % size == source.rng.randrange(size))
    read = at(operand.candidate, reading.access)
    kept = read * owner.reshape((-1,) + (1,) * (read.ndim - 1))
    view = rule(digits, reading)
    return None if view is None else holds(view, kept, operand.baseline)


def of_owners(source: Source, rule: Rule) -> bool | None:
    """Exactly one rank of each group has a 1; ranks of other groups in the same place have the same."""
    ranks = source.rng.choice((2, 4, 6, 8, 12))
    terms = Terms()
    domain = (ranks, source.rng.randint(1, 2))
    pieces = [
        Term(0, stride, size, source.rng.choice((1, 1, 2, 4, -1)) * stride)
        for stride, size in source.layouts.digits(ranks)
    ]
    if source.rng.random() < 0.2:
        pieces.append(Term(0, source.rng.choice((1, 2, 3)), 2, source.rng.choice((1, 3))))
    expr = summed(sum(abs(piece.factor) * piece.size for piece in pieces if piece.factor < 0), pieces)
    sides = [terms.index(domain, expr), terms.index(domain, Expr(source.rng.randint(0, ranks), ()))]
    source.rng.shuffle(sides)
    access = terms.point("eq", sides)
    digits = rule(terms, access)
    if digits is None:
        return None
    value = Values(terms, {}).of(access)
    groups = groups_of(ranks, digits)
    if any(not np.allclose(value[group].sum(axis=0), 1) for group in groups):
        return False
    place = [sum(rank // stride % size * stride for stride, size in digits) for rank in range(ranks)]
    return all(
        np.array_equal(value[one], value[other])
        for one in range(ranks)
        for other in range(ranks)
        if place[one] == place[other]
    )


def of_scaled(source: Source, rule: Rule) -> bool | None:
    operand = source.operand()
    reading = source.reading(operand)
    factor = source.scale()
    view = rule(reading, factor)
    if view is None:
        return None
    return holds(view, float(factor) * at(operand.candidate, reading.access), operand.baseline)


def of_unscaled(source: Source, rule: Rule) -> bool | None:
    operand = source.operand()
    given = _onto(source, operand.baseline)
    factor = source.scale()
    view = rule(operand.view, given, factor)
    result = Value(float(factor) * operand.baseline.at(given))
    return None if view is None else holds(view, operand.candidate, result)


def _onto(source: Source, baseline: Value) -> IndexMap:
    """A map through which the whole baseline value is read, its dimensions in another order; or any map."""
    shape = baseline.at_shape()
    if source.rng.random() < 0.1:
        return source.layouts.chain(shape)
    dims = source.rng.sample(range(len(shape)), len(shape))
    domain = tuple(shape[dim] for dim in dims)
    coordinates = [ZERO] * len(shape)
    for place, dim in enumerate(dims):
        backwards = source.rng.random() < 0.2
        coordinates[dim] = (
            along(place, shape[dim], -1, shape[dim] - 1) if backwards else along(place, shape[dim])
        )
    return IndexMap(domain, shape, tuple(coordinates))


def of_piece(source: Source, rule: Rule) -> bool | None:
    operand = source.operand()
    reading = source.reading(operand)
    read = at(operand.candidate, reading.access)
    if read.ndim < 1:
        return None
    axis, start, after = (
        source.rng.randrange(read.ndim),
        source.rng.randint(0, 2),
        source.rng.randint(0, 2),
    )
    full = (*read.shape[:axis], start + read.shape[axis] + after, *read.shape[axis + 1 :])
    view = rule(reading, full, axis, start)
    if view is None:
        return None
    return holds(view, _placed(source, read, full, axis, start), operand.baseline)


def _placed(source: Source, part: Any, full: Shape, axis: int, start: int) -> Any:
    values = source.values(full)
    values[(slice(None),) * axis + (slice(start, start + part.shape[axis]),)] = part
    return values


def of_assembled(source: Source, rule: Rule) -> bool | None:
    operand = source.operand()
    given = _onto(source, operand.baseline)
    read = operand.baseline.at(given)
    axis, start, after = source.rng.randrange(read.ndim), source.rng.randint(0, 2), source.rng.randint(0, 2)
    full = (*read.shape[:axis], start + read.shape[axis] + after, *read.shape[axis + 1 :])
    view = rule(operand.view, given, full, axis, start)
    if view is None:
        return None
    return holds(view, operand.candidate, Value(_placed(source, read, full, axis, start)))


def of_completed(source: Source, rule: Rule) -> bool | None:
    """A piece that repeats what it reads, beside another view; whichever, what is concluded holds."""
    operand = source.operand()
    view, rng = operand.view, source.rng
    given = _repeated(source, _onto(source, operand.baseline))
    read = operand.baseline.at(given)
    axis, start, after = rng.randrange(read.ndim), rng.randint(0, 2), rng.randint(0, 2)
    full = (*read.shape[:axis], start + read.shape[axis] + after, *read.shape[axis + 1 :])
    dim = rng.randrange(len(view.shape))
    first, size = view.window[dim]
    if size < 2:
        return None
    cut = rng.randint(1, size - 1)
    windows = [
        (*view.window[:dim], part, *view.window[dim + 1 :])
        for part in ((first, cut), (first + cut, size - cut))
    ]
    rng.shuffle(windows)
    own = narrowed(view, windows[0])
    if own is None:
        return None
    beside = View(view.shape, windows[1], _somewhere(source, windows[1], full), view.scale, view.partial)
    answer = rule(own, given, full, axis, start, beside)
    whole_value = Value(_placed(source, read, full, axis, start))
    return None if answer is None else holds(answer, operand.candidate, whole_value)


def _repeated(source: Source, given: IndexMap) -> IndexMap:
    """The same read over one more dimension, or over more of one, on which nothing depends."""
    rng = source.rng
    place, times = rng.randrange(len(given.domain) + 1), rng.choice((2, 3))
    if place < len(given.domain) and rng.random() < 0.5:
        domain = (*given.domain[:place], given.domain[place] * times, *given.domain[place + 1 :])
        return IndexMap(
            domain, given.codomain, tuple(_slower(expr, place, times) for expr in given.coordinates)
        )
    domain = (*given.domain[:place], times, *given.domain[place:])
    moved = [
        Expr(expr.offset, tuple(t._replace(dim=t.dim + (t.dim >= place)) for t in expr.terms))
        for expr in given.coordinates
    ]
    return IndexMap(domain, given.codomain, tuple(moved))


def _slower(expr: Expr, dim: int, times: int) -> Expr:
    return Expr(
        expr.offset,
        tuple(t._replace(stride=t.stride * times) if t.dim == dim else t for t in expr.terms),
    )


def _somewhere(source: Source, window: tuple[tuple[int, int], ...], full: Shape) -> IndexMap:
    """Any map from a window into a shape."""
    domain = tuple(size for _, size in window)
    exprs: list[Expr] = []
    for size in full:
        fitting = [dim for dim, extent in enumerate(domain) if extent <= size]
        if fitting and source.rng.random() < 0.8:
            dim = source.rng.choice(fitting)
            exprs.append(along(dim, domain[dim], offset=source.rng.randint(0, size - domain[dim])))
        else:
            exprs.append(Expr(source.rng.randrange(size), ()))
    return IndexMap(domain, full, tuple(exprs))


def of_united(source: Source, rule: Rule) -> bool | None:
    """Two windows of one view; or of two, one of which is true of each window."""
    operand = source.operand()
    view = operand.view
    dim = source.rng.randrange(len(view.shape))
    start, size = view.window[dim]
    if size < 2:
        return None
    cut = source.rng.randint(1, size - 1)
    first = narrowed(view, (*view.window[:dim], (start, cut), *view.window[dim + 1 :]))
    second = narrowed(view, (*view.window[:dim], (start + cut, size - cut), *view.window[dim + 1 :]))
    if first is None or second is None:
        return None
    candidate = operand.candidate
    if source.rng.random() < 0.4 and view.partial is None:
        second = _other(source, second, operand)
        box = tuple(slice(start, start + size) for start, size in second.window)
        candidate[box] = source.realised(second, operand.baseline)[box]
    answer = rule(first, second)
    return None if answer is None else holds(answer, candidate, operand.baseline)


def _other(source: Source, view: View, operand: Operand) -> View:
    """Another view of the same window: of another place, or of another scale."""
    moved = tuple(
        Expr((expr.offset + 1) % size, ()) if not expr.terms else expr
        for expr, size in zip(view.index.coordinates, view.index.codomain, strict=True)
    )
    if source.rng.random() < 0.5:
        flipped = source.layouts.reader(view.index.domain)
        if flipped.codomain == view.index.codomain:
            moved = flipped.coordinates
    index = IndexMap(view.index.domain, view.index.codomain, moved)
    return View(view.shape, view.window, index, view.scale, view.partial)


def of_commuted(source: Source, rule: Rule) -> bool | None:
    """Operands of the operations that the engine may swap."""
    op = source.rng.choice(COMMUTATIVE)
    truth = op in ("and", "or", "xor")
    pair = [source.values((3, 2), truth=truth) for _ in range(2)]
    return bool(np.allclose(operation(op, pair, 0), operation(op, rule(pair), 0)))


def of_goal(source: Source, rule: Rule) -> bool | None:
    """A view of the candidate's term, read as its output is, against a choice of the output relation."""
    operand = source.operand()
    access = source.access(operand.candidate.shape)
    given = _onto(source, operand.baseline)
    terms = Terms()
    own = terms.leaf("own", operand.candidate.shape).term
    other = terms.leaf("other", operand.baseline.at_shape()).term
    names = NodeId("b"), NodeId("c")
    lowered = RegionTerms(
        terms=terms,
        baseline=Lowered(accesses={names[0]: Access(given, other)}, unknown=()),
        candidate=Lowered(accesses={names[1]: Access(access, own)}, unknown=()),
        baseline_terms=2,
    )
    choices = None
    if source.rng.random() < 0.3:
        reader = source.layouts.reader(access.domain)
        hidden = (
            IndexMap(access.domain, given.domain, reader.coordinates)
            if reader.codomain == given.domain
            else None
        )
        choices = (("any", hidden),) if hidden is not None else None
    found = rule(Goal(baseline=names[0], candidate=names[1], choices=choices), lowered, operand.view)
    if found is None:
        return None
    result, wanted = at(operand.candidate, access), operand.baseline.at(given)
    return bool(np.allclose(result, at(wanted, found.index)))


def swapped(pair: list[Any]) -> list[Any]:
    """What the engine's rule does to two operands."""
    return pair[::-1]


EXPERIMENTS: Mapping[str, tuple[Experiment, Rule]] = {
    "counterpart": (of_counterpart, counterpart),
    "joint": (of_joint, joint),
    "folded": (of_folded, folded),
    "concluded": (of_concluded, concluded),
    "over_ranks": (of_over_ranks, over_ranks),
    "owned": (of_owned, owned),
    "owners": (of_owners, owners),
    "scaled": (of_scaled, scaled),
    "unscaled": (of_unscaled, unscaled),
    "piece": (of_piece, piece),
    "assembled": (of_assembled, assembled),
    "completed": (of_completed, completed),
    "united": (of_united, united),
    "commuted": (of_commuted, swapped),
    "goal": (of_goal, shown),
}
"""By the function's name; ``commuted`` and ``goal`` are the engine's own."""
