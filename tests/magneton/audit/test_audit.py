"""How sightings become wastes: by line and module, each operator once, and only what matters is told."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from comparisons import LAYERS, a_side, with_readings_lost
from hypothesis import given, settings
from profiles import profiles

from magneton.audit.audit import DETECTORS, Detector, audit
from magneton.audit.model import Sighting
from magneton.audit.step import Step
from magneton.profile.model import OpId, Profile

STEP_J = LAYERS * 3.5 + 1.0  # a_side: 1.0, 0.5 and 2.0 J in each layer, and a residual


def seeing(
    name: str, pattern: str = "needless copy", avoidable: float | None = 1.0, line_of: int = 0
) -> Detector:
    """Sees every operator of that name, one by one; blames the operator ``line_of`` places away."""

    def detector(step: Step) -> Iterator[Sighting]:
        for operator in step.operators:
            if operator.name == name:
                yield Sighting(
                    pattern=pattern,  # pyright: ignore[reportArgumentType] - drawn by tests
                    operators=(operator.op_id,),
                    evidence=f"saw {operator.op_id}",
                    change="do without",
                    avoidable=avoidable,
                    line_of=OpId(operator.op_id + line_of) if line_of else None,
                )

    return detector


def test_equal_lines_of_repeated_layers_are_one_waste() -> None:
    found = audit(a_side(noise=0.0), detectors=[seeing("aten.bmm.default")])

    (waste,) = found.wastes
    assert (waste.repeats, waste.work.module_path) == (LAYERS, "model.layers.0-3.self_attn")
    assert waste.work.source is not None and waste.work.source.line == 11
    assert waste.cost is not None and waste.cost.value == pytest.approx(LAYERS * 1.0)
    assert waste.share == waste.avoidable == pytest.approx(LAYERS * 1.0 / STEP_J)
    (step,) = found.steps
    assert step.share == pytest.approx(waste.share)


def test_what_two_sightings_of_a_place_claim_counts_once_and_the_larger_claim_holds() -> None:
    half, whole = seeing("aten.mm.default", avoidable=0.5), seeing("aten.mm.default", avoidable=0.75)
    (waste,) = audit(a_side(noise=0.0), detectors=[half, whole, half]).wastes

    assert waste.cost is not None and waste.cost.value == pytest.approx(LAYERS * 2.0)
    assert waste.avoidable == pytest.approx(0.75 * LAYERS * 2.0 / STEP_J)


def test_patterns_of_one_operator_are_told_apart_and_the_step_counts_it_once() -> None:
    detectors = [seeing("aten.mm.default"), seeing("aten.mm.default", pattern="dead result")]
    found = audit(a_side(noise=0.0), detectors=detectors)

    assert {waste.pattern for waste in found.wastes} == {"needless copy", "dead result"}
    assert found.steps[0].share == pytest.approx(LAYERS * 2.0 / STEP_J)


def test_the_line_to_change_may_be_that_of_another_operator() -> None:
    (waste,) = audit(a_side(), detectors=[seeing("aten.bmm.default", line_of=1)]).wastes

    assert waste.work.source is not None and waste.work.source.line == 12
    assert waste.work.operators == (("aten.bmm.default", 1),)


def test_the_largest_comes_first_and_the_small_are_counted() -> None:
    detectors = [seeing(name) for name in ("aten._softmax.default", "aten.mm.default", "aten.bmm.default")]

    found = audit(a_side((1.0, 0.001, 2.0), noise=0.0), detectors=detectors)
    assert [waste.work.operators[0][0] for waste in found.wastes] == ["aten.mm.default", "aten.bmm.default"]
    assert found.small == 1
    assert audit(a_side(), detectors=detectors, min_share=0.0).small == 0


def test_a_place_that_was_not_read_is_counted_and_never_costs_nothing() -> None:
    unread = with_readings_lost(a_side(), key=2)
    found = audit(unread, detectors=[seeing("aten.mm.default")])

    assert found.wastes == () and found.small == 1


def test_where_a_device_waits_for_its_host_is_told_whatever_the_operator_costs() -> None:
    profile = a_side((1.0, 0.0, 2.0), effect="sync")
    on_board = replace(profile, origin=replace(profile.origin, device_kind="cuda"))

    assert {waste.pattern for waste in audit(on_board).wastes} == {"host synchronisation"}
    assert len(audit(on_board, min_share=0.9).wastes) == 3
    assert audit(profile, min_share=0.9).wastes == ()


@settings(max_examples=50, deadline=None)
@given(profiles())
def test_any_profile_can_be_audited(profile: Profile) -> None:
    found = audit(profile, min_share=0.0)

    for waste in found.wastes:
        assert waste.repeats >= 1
        assert waste.avoidable is None or waste.avoidable >= 0
    assert len(found.steps) == len(profile.origin.workload.phases)


def test_every_detector_stays_silent_where_each_operator_works_on_the_one_before() -> None:
    """A chain of different computations, without sketches: nothing to hold against anybody."""
    assert [waste.pattern for waste in audit(a_side(), min_share=0.0, detectors=DETECTORS).wastes] == []
