"""Certificates as JSON: what each distinct proof derives, and where it is used.

Regions are not stored: they are made again of the two programs, under the relations, while the file is read.
A file from elsewhere is bounded, its every part is checked before it is used, and nothing in it is run. That
it can be read says nothing of whether it holds: ``scalify.prove.check`` does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from scalify.errors import ScalifyError
from scalify.ir.graph import Graph, NodeId
from scalify.layout.digits import Expr, Term
from scalify.layout.maps import IndexMap
from scalify.layout.views import Partial, View
from scalify.normalize.terms import TermId
from scalify.prove.certificate import Certificate, RegionCertificate, Use
from scalify.prove.engine import Derivation
from scalify.prove.established import Rejected
from scalify.prove.programs import Programs
from scalify.prove.region import Region, Shown
from scalify.relate.model import Relations

SCHEMA = "scalify certificate"
VERSION = 1
MAX_CHARACTERS = 1 << 28
MAX_ITEMS = 4_000_000
MAX_NUMBER = 2**63

Item = TypeVar("Item")


class InvalidCertificate(ScalifyError):
    """A file that is no certificate, or not of these programs."""


def to_json(certificate: Certificate) -> str:
    """The certificate as one line of text."""
    stored = {
        "schema": SCHEMA,
        "version": VERSION,
        "rules_version": certificate.rules_version,
        "regions": [_region(region) for region in certificate.regions],
        "used": [_use(use) for use in certificate.used],
    }
    return json.dumps(stored, separators=(",", ":"))


def from_json(text: str, baseline: Graph, candidate: Graph, relations: Relations) -> Certificate:
    """The certificate in a text, about these programs under these relations."""
    if len(text) > MAX_CHARACTERS:
        raise _wrong(f"it has more than {MAX_CHARACTERS} characters")
    try:
        stored = _Reader(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise _wrong(f"it is not JSON: {error}") from None
    if stored.text("schema") != SCHEMA or stored.number("version") != VERSION:
        raise _wrong(f"it is not a {SCHEMA} of version {VERSION}")
    used = stored.items("used", _read_use)
    parts = stored.items("regions", lambda reader: reader)
    return Certificate(
        regions=_read_regions(parts, used, Programs(baseline, candidate, relations)),
        used=used,
        rules_version=stored.number("rules_version"),
    )


def _read_regions(
    parts: Sequence["_Reader"], used: Sequence[Use], programs: Programs
) -> tuple[RegionCertificate, ...]:
    """Each distinct proof with the first region that uses it; what it shows is known to the next."""
    found: dict[int, RegionCertificate] = {}
    for place, use in enumerate(used):
        if not 0 <= use.region < len(parts):
            raise _wrong(f"region {place} is of proof {use.region}, of which there is none")
        try:
            region = programs.region(use)
            if use.region not in found:
                found[use.region] = _read_region(parts[use.region], region)
            programs.learn(region, found[use.region].shown)
        except (Rejected, ValueError) as error:
            raise _wrong(f"region {place}: {error}") from None
    if len(found) < len(parts):
        raise _wrong("it has a proof that is not used")
    return tuple(found[number] for number in range(len(parts)))


def _wrong(message: str) -> InvalidCertificate:
    return InvalidCertificate(
        f"the certificate cannot be used: {message}",
        hint="verify the two programs again and keep the certificate of that verdict",
    )


def _region(region: RegionCertificate) -> dict[str, object]:
    return {
        "derivations": [
            [step.rule, step.candidate, step.baseline, step.view, list(step.premises)]
            for step in region.derivations
        ],
        "views": {name: _view(view) for name, view in region.views.items()},
        "maps": {name: _map(index) for name, index in region.maps.items()},
        "ops": dict(region.ops),
        "shown": [None if answer is None else [answer.layout, _map(answer.index)] for answer in region.shown],
    }


def _use(use: Use) -> dict[str, object]:
    return {
        "region": use.region,
        "baseline": use.baseline,
        "candidate": use.candidate,
        "baseline_entering": use.baseline_entering,
        "candidate_entering": use.candidate_entering,
        "goals": use.goals,
    }


def _view(view: View) -> list[object]:
    partial = None if view.partial is None else [view.partial.kind, view.partial.digits]
    scale = [view.scale.numerator, view.scale.denominator]
    return [view.shape, view.window, _map(view.index), scale, partial]


def _map(index: IndexMap) -> list[object]:
    coordinates = [[expr.offset, [list(term) for term in expr.terms]] for expr in index.coordinates]
    return [index.domain, index.codomain, coordinates]


class _Reader:
    """A JSON object of which every field is asked for by its kind."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise _wrong(f"{_shown(value)} stands where an object should")
        self._fields: dict[str, object] = value

    def _field(self, name: str) -> object:
        if name not in self._fields:
            raise _wrong(f"{name!r} is missing")
        return self._fields[name]

    def text(self, name: str) -> str:
        return _text(self._field(name))

    def number(self, name: str) -> int:
        return _number(self._field(name))

    def list(self, name: str, read: Callable[[object], Item]) -> tuple[Item, ...]:
        return tuple(read(item) for item in _list(self._field(name)))

    def items(self, name: str, read: Callable[["_Reader"], Item]) -> tuple[Item, ...]:
        return self.list(name, lambda item: read(_Reader(item)))

    def named(self, name: str, read: Callable[[object], Item]) -> Mapping[str, Item]:
        return {key: read(value) for key, value in _Reader(self._field(name))._fields.items()}


def _read_use(reader: _Reader) -> Use:
    return Use(
        region=reader.number("region"),
        baseline=reader.list("baseline", _node),
        candidate=reader.list("candidate", _node),
        baseline_entering=reader.list("baseline_entering", _node),
        candidate_entering=reader.list("candidate_entering", _node),
        goals=reader.list("goals", _read_goal),
    )


def _read_goal(item: object) -> tuple[NodeId, NodeId, str | None]:
    baseline, candidate, output = _list(item, 3)
    return _node(baseline), _node(candidate), None if output is None else _text(output)


def _read_region(reader: _Reader, region: Region) -> RegionCertificate:
    return RegionCertificate(
        region=region,
        derivations=reader.list("derivations", _read_step),
        views=reader.named("views", _read_view),
        maps=reader.named("maps", _read_map),
        ops=reader.named("ops", _text),
        shown=reader.list("shown", _read_shown),
    )


def _read_step(item: object) -> Derivation:
    rule, candidate, baseline, view, premises = _list(item, 5)
    cells = tuple(cell if isinstance(cell, str) else _number(cell) for cell in _list(premises))
    return Derivation(_text(rule), TermId(_number(candidate)), TermId(_number(baseline)), _text(view), cells)


def _read_shown(item: object) -> Shown | None:
    if item is None:
        return None
    layout, index = _list(item, 2)
    return Shown(_text(layout), _read_map(index))


def _read_view(item: object) -> View:
    shape, window, index, scale, partial = _list(item, 5)
    sizes, read = _sizes(shape), _read_map(index)
    box = tuple(_pair(part) for part in _list(window))
    inside = len(box) == len(sizes) and all(
        start >= 0 and size > 0 and start + size <= full
        for (start, size), full in zip(box, sizes, strict=True)
    )
    if not inside or not sizes or read.domain != tuple(size for _, size in box):
        raise _wrong("a view's window does not fit its tensor")
    above, below = _pair(scale)
    if not above or below < 1:
        raise _wrong(f"{above}/{below} is no scale")
    return View(sizes, box, read, Fraction(above, below), None if partial is None else _read_partial(partial))


def _read_partial(item: object) -> Partial:
    kind, digits = _list(item, 2)
    found = tuple(_pair(digit) for digit in _list(digits))
    if kind not in ("sum", "max", "min", "prod") or not found or any(s < 1 or n < 2 for s, n in found):
        raise _wrong(f"{_shown(item)} is no pending combination")
    return Partial(_text(kind), found)


def _read_map(item: object) -> IndexMap:
    domain, codomain, coordinates = _list(item, 3)
    sizes = _sizes(domain)
    exprs = tuple(_read_expr(expr, len(sizes)) for expr in _list(coordinates))
    targets = _sizes(codomain)
    if len(exprs) != len(targets):
        raise _wrong("a map has not as many coordinates as dimensions")
    return IndexMap(sizes, targets, exprs)


def _read_expr(item: object, dims: int) -> Expr:
    offset, terms = _list(item, 2)
    return Expr(_number(offset), tuple(_read_term(term, dims) for term in _list(terms)))


def _read_term(item: object, dims: int) -> Term:
    dim, stride, size, factor = (_number(cell) for cell in _list(item, 4))
    if not 0 <= dim < dims or stride < 1 or size < 2 or not factor:
        raise _wrong(f"{_shown(item)} is no digit of {dims} dimensions")
    return Term(dim, stride, size, factor)


def _sizes(item: object) -> tuple[int, ...]:
    sizes = tuple(_number(size) for size in _list(item))
    if any(size < 0 for size in sizes) or len(sizes) > 256:
        raise _wrong(f"{_shown(item)} is no shape")
    return sizes


def _pair(item: object) -> tuple[int, int]:
    first, second = _list(item, 2)
    return _number(first), _number(second)


def _list(item: object, count: int | None = None) -> list[object]:
    if not isinstance(item, list):
        raise _wrong(f"{_shown(item)} stands where a list should")
    found: list[object] = item
    if (count is not None and len(found) != count) or len(found) > MAX_ITEMS:
        raise _wrong(f"a list has {len(found)} items")
    return found


def _number(item: object) -> int:
    if type(item) is not int or abs(item) > MAX_NUMBER:
        raise _wrong(f"{_shown(item)} stands where a whole number should")
    return item


def _text(item: object) -> str:
    if not isinstance(item, str):
        raise _wrong(f"{_shown(item)} stands where text should")
    return item


def _node(item: object) -> NodeId:
    return NodeId(_text(item))


def _shown(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:57]}..."
