import io
import json
from collections.abc import Iterator

import pytest
from comparisons import a_side
from hypothesis import given, settings
from profiles import NASTY_TEXTS, profiles

from magneton.audit.audit import audit
from magneton.audit.model import Audit, Sighting
from magneton.audit.step import Step
from magneton.profile.model import Profile
from magneton.report.audit import audit_json, print_audit
from magneton.report.console import console_for

EVIDENCE = "holds what 3 MiB of memory held before " + " ".join(NASTY_TEXTS)


def everything(step: Step) -> Iterator[Sighting]:
    for operator in step.operators:
        yield Sighting(
            pattern="needless copy",
            operators=(operator.op_id,),
            evidence=EVIDENCE,
            change="read the original",
        )


def printed(found: Audit, width: int = 80, top: int = 10) -> str:
    stream = io.StringIO()
    print_audit(found, console_for(stream, width), top=top)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 160])
def test_a_waste_tells_where_what_and_what_to_do(width: int) -> None:
    text = printed(audit(a_side(), detectors=[everything]), width)

    for needed in ("needless copy", "at most", "model.layers.0-3.mlp", "model.py:21", "4 times per step"):
        assert needed in text
    assert "read the original" in text and "modelled, not measured" in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_that_nothing_was_seen_is_said() -> None:
    assert "No known pattern of waste takes 0.50 % of a step or more" in printed(audit(a_side()))


def test_top_bounds_the_list_and_says_so() -> None:
    assert "2 more: --top shows them" in printed(audit(a_side(), detectors=[everything]), top=1)


def test_what_is_small_is_counted() -> None:
    text = printed(audit(a_side(), detectors=[everything], min_share=0.2))
    assert "1 place takes less than 20.0 % of a step" in text


@settings(max_examples=25, deadline=None)
@given(profiles())
def test_strings_from_a_profile_are_shown_as_what_they_are(profile: Profile) -> None:
    found = audit(profile, min_share=0.0, detectors=[everything])
    text = printed(found, top=3)

    assert "\x1b" not in text and "\u202e" not in text
    report = json.loads(audit_json(found))
    assert (report["schema"], report["version"]) == ("magneton-audit", 1)
    assert len(report["wastes"]) == len(found.wastes)
