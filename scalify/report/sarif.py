"""A result as SARIF 2.1.0, the form in which code scanners take findings.

In: a result. Out: one run, with a finding at the line of the candidate that goes wrong, or that could not be
followed, and one at each line where it rounds more than the baseline. A proof has none. Paths below the
folder one stands in are relative; the rules' ids are a contract (docs/scalify-json.md).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import quote

from scalify.ir.graph import Site
from scalify.report.advice import why
from scalify.report.codec import document
from scalify.report.places import short_file
from scalify.report.result import Result, place_key
from scalify.report.witness import difference_text
from scalify.verdict import Place

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
ROOT = "%SRCROOT%"
MOST_RELATED = 32

Level = Literal["error", "warning", "note"]
Json = Mapping[str, Any]

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a finding may be an instance of. ``id`` never changes."""

    id: str
    name: str
    text: str
    level: Level


REFUTED = Rule(
    id="scalify/refuted",
    name="OutputsDiffer",
    text="There are inputs on which the candidate's outputs differ from the baseline's.",
    level="error",
)
UNKNOWN = Rule(
    id="scalify/unknown",
    name="NotProved",
    text="It is not known whether the candidate computes what the baseline does.",
    level="warning",
)
PRECISION = Rule(
    id="scalify/precision",
    name="RoundsMore",
    text="The candidate rounds more than the baseline does.",
    level="warning",
)
RULES = (REFUTED, UNKNOWN, PRECISION)


def as_sarif(result: Result) -> str:
    """The whole log, as ASCII."""
    driver = {
        "name": "scalify",
        "version": result.scalify,
        "rules": [_rule(rule) for rule in RULES],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT: {"description": {"text": "the folder in which scalify was run"}}},
        "columnKind": "unicodeCodePoints",
        "results": [*_verdict(result), *_precision(result)],
        "properties": {"verdict": result.verdict},
    }
    return document({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2)


def _rule(rule: Rule) -> Json:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.text},
        "defaultConfiguration": {"level": rule.level},
    }


def _verdict(result: Result) -> Iterator[Json]:
    """The finding of a verdict that is no proof; where no place is known, it is at the candidate's file."""
    if result.verdict == "proved":
        return
    rule = REFUTED if result.verdict == "refuted" else UNKNOWN
    suspect = result.suspect
    if suspect is None:
        level: Level = "error" if rule is REFUTED else "note"
        yield {**_finding(rule, _message(result), [_of_file(result)], [], _names(result)), "level": level}
        return
    related = [_related(number, *each, result) for number, each in enumerate(_around(result), 1)]
    location = _location(suspect.candidate, result) or _of_file(result)
    yield _finding(rule, _message(result), [location], related[:MOST_RELATED], _key(suspect.candidate))


def _precision(result: Result) -> Iterator[Json]:
    for finding in result.precision:
        location = _location(finding.candidate, result) or _of_file(result)
        given = [] if finding.baseline is None else [("the baseline", finding.baseline)]
        related = [_related(1, *each, result) for each in given if each[1].site is not None]
        yield _finding(PRECISION, f"{finding.text}.", [location], related, _key(finding.candidate))


def _finding(rule: Rule, message: str, locations: list[Json], related: list[Json], key: str) -> Json:
    found: dict[str, Any] = {
        "ruleId": rule.id,
        "ruleIndex": RULES.index(rule),
        "level": rule.level,
        "message": {"text": message},
        "locations": locations,
        "partialFingerprints": {"scalify/v1": sha256(f"{rule.id} {key}".encode()).hexdigest()},
    }
    return {**found, "relatedLocations": related} if related else found


def _message(result: Result) -> str:
    """The verdict, the likely mistake, and how they differ."""
    suspect = result.suspect
    said = [suspect.guess] if suspect is not None and suspect.guess else []
    if result.witness is not None:
        said.append(difference_text(result.witness.difference))
    if result.reason is not None:
        said.append(why(result))
    if result.lead:
        said.append(result.lead)
    texts = said or ["the outputs differ" if result.verdict == "refuted" else "not proved"]
    return ". ".join(text[:1].upper() + text[1:] for text in texts) + "."


def _around(result: Result) -> Iterator[tuple[str, Place]]:
    """Places beside the finding's own that have a line."""
    suspect = result.suspect
    if suspect is None:
        return
    if suspect.baseline is not None and suspect.baseline.site is not None:
        yield "the baseline", suspect.baseline
    for place in suspect.chain:
        if place.site is not None:
            yield f"data is moved here: {place.op}", place


def _related(number: int, text: str, place: Place, result: Result) -> Json:
    return {"id": number, "message": {"text": text}, **(_location(place, result) or {})}


def _location(place: Place, result: Result) -> Json | None:
    if place.site is None:
        return None
    found = _of_line(place.site, result.sources)
    name = place.scope or place.site.function
    return {**found, "logicalLocations": [{"fullyQualifiedName": name}]} if name else found


def _of_line(site: Site, sources: Mapping[str, str]) -> Json:
    region: dict[str, Any] = {"startLine": max(site.line, 1)}
    source = sources.get(place_key(site))
    if source:
        region["snippet"] = {"text": source}
    return {"physicalLocation": {"artifactLocation": _artifact(site.file), "region": region}}


def _of_file(result: Result) -> Json:
    """The candidate's graph, where no line is known: a finding without a place is not shown at all."""
    path = result.candidate.files[0].path if result.candidate.files else result.candidate.name or "candidate"
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": {"startLine": 1}}}


def _artifact(file: str) -> Json:
    """A relative path with forward slashes; of a library's file that follows its packages' folder."""
    relative = PurePath(short_file(str(Path(file))))
    parts = [part for part in relative.parts if part not in (relative.anchor, "..")]
    uri = quote("/".join(part.replace("\\", "/") for part in parts) or "unknown")
    return {"uri": uri, "uriBaseId": ROOT}


def _key(place: Place) -> str:
    """What stays the same of a place when lines are added above it, or layers."""
    file = PurePath(place.site.file).name if place.site is not None else ""
    function = place.site.function if place.site is not None else ""
    return " ".join((file, function, place.op, _NUMBERS.sub("*", place.scope)))


def _names(result: Result) -> str:
    return " ".join(output.candidate for output in result.outputs)
