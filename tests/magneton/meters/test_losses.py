"""A counter that loses energy is told from work that pauses, and from a change that was seen late."""

from collections.abc import Sequence

from magneton.meters.edges import Edge
from magneton.meters.losses import loss
from magneton.profile.model import PowerSample

USUAL = [(0.1, 30.0)] * 8


def stepping(*steps: tuple[float, float]) -> list[Edge]:
    """Edges after so many seconds with so many joules more."""
    edges = [Edge(seen_before_s=0.999, seen_s=1.0, energy_j=0.0)]
    for wait_s, step_j in steps:
        at_s = edges[-1].seen_s + wait_s
        edges.append(Edge(seen_before_s=at_s - 1e-3, seen_s=at_s, energy_j=edges[-1].energy_j + step_j))
    return edges


def samples(*powers_w: float) -> tuple[PowerSample, ...]:
    """One right after each edge."""
    return tuple(
        PowerSample(phase="", round=0, time_s=1.001 + 0.1 * number, power_w=power_w)
        for number, power_w in enumerate(powers_w)
    )


def found(edges: Sequence[Edge], *powers_w: float) -> str:
    return loss(edges, samples(*powers_w), 0.9, 9.0, 0.1)


def test_a_counter_that_stands_still_and_loses_energy_is_noticed() -> None:
    assert "stood still for 0.5 s" in found(stepping(*USUAL, (0.5, 30.0), *USUAL))


def test_a_change_that_was_seen_late_is_no_loss() -> None:
    assert found(stepping(*USUAL, (0.5, 150.0), *USUAL)) == ""
    assert found([]) == ""


def test_a_step_that_is_too_small_while_power_stays_up_is_a_loss() -> None:
    told = found(stepping(*USUAL, (0.1, 10.0), *USUAL), *[300.0] * 17)

    assert "went up by 10 J where 30 J are usual" in told


def test_work_that_pauses_is_no_loss() -> None:
    edges = stepping(*USUAL, (0.1, 10.0), *USUAL)

    assert found(edges, *[300.0] * 9, 90.0, *[300.0] * 7) == ""


def test_without_samples_a_small_step_shows_nothing() -> None:
    assert found(stepping(*USUAL, (0.1, 10.0), *USUAL)) == ""


def test_the_rise_of_power_is_no_loss() -> None:
    assert found(stepping((0.1, 3.0), *USUAL, *USUAL), *[300.0] * 17) == ""
