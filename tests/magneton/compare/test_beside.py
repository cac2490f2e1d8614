"""Net energy and the host's energy: told beside the cost of a step, in none of its rows."""

from dataclasses import replace

import pytest
from comparisons import a_side, matched
from hypothesis import given
from hypothesis import strategies as st
from on_boards import BOARD, HOST, at_rest, on_a_board

from magneton.compare.model import Comparison, Criteria
from magneton.compare.profiles import compare
from magneton.profile.model import Conditions, Profile
from magneton.quantity import Provenance
from magneton.workload import PREFILL


def compared(baseline: Profile, candidate: Profile) -> Comparison:
    return compare(baseline, candidate, matched(baseline, candidate), Criteria())


def test_a_host_that_spins_is_found_though_the_boards_spend_alike() -> None:
    found = compared(on_a_board(host_w=2.0), on_a_board(host_w=9.0, seed=1))

    (finding,) = found.host_findings
    assert (finding.costly, finding.outcome, finding.device_alike) == ("candidate", "waste", True)
    assert finding.ratio.value == pytest.approx(4.5, rel=0.05)
    assert found.findings == ()
    assert (found.verdict, found.reason) == (
        "findings",
        "the candidate's host spends 4.50 times as much in prefill",
    )


def test_the_hosts_energy_is_in_no_row() -> None:
    spinning = compared(on_a_board(host_w=2.0), on_a_board(host_w=9.0))
    quiet = compared(on_a_board(host_w=2.0), on_a_board(host_w=2.0))

    assert spinning.rows == quiet.rows
    assert spinning.totals[0].candidate_cost == quiet.totals[0].candidate_cost


def test_the_lean_host_that_takes_longer_is_a_bargain_and_no_waste() -> None:
    fast, slow = on_a_board(host_w=20.0), on_a_board(host_w=1.0)
    slow = replace(slow, blocks=tuple(replace(b, duration_s=1.5 * b.duration_s) for b in slow.blocks))

    assert [f.outcome for f in compared(fast, slow).host_findings] == ["trade-off"]
    assert [f.outcome for f in compared(slow, fast).host_findings] == ["trade-off"]


def test_hosts_within_the_threshold_and_noisy_hosts_are_no_finding() -> None:
    assert compared(on_a_board(host_w=2.0), on_a_board(host_w=2.1)).host_findings == ()
    assert compared(on_a_board(host_w=2.0, spread=0.9), on_a_board(host_w=2.6, seed=2)).host_findings == ()


@pytest.mark.parametrize(("scale_high", "found"), [(1.0, 0), (20.0, 1)])
def test_an_excess_that_cannot_matter_beside_the_board_is_no_finding(scale_high: float, found: int) -> None:
    """0.03 J against 15 J of the board: below 0.5 %, unless the host's meter may tell far too little."""
    quiet, louder = on_a_board(host_w=0.01), on_a_board(host_w=0.03, seed=1)
    meter = replace(HOST, scale_high=scale_high)
    sides = [replace(side, origin=replace(side.origin, host_meter=meter)) for side in (quiet, louder)]

    assert len(compared(*sides).host_findings) == found


def test_work_on_the_host_itself_has_no_host_beside_it() -> None:
    totals = compared(a_side(), a_side()).totals[0]

    assert (totals.host, totals.net) == (None, None)


@given(st.floats(0, 8))
def test_net_is_gross_without_rest_over_the_same_time(rest_w: float) -> None:
    side = at_rest(a_side(noise=0.0, meter=BOARD), rest_w)
    totals = compared(side, side).totals[0]
    gross, time = totals.baseline_cost, totals.baseline_duration_s
    assert gross is not None and time is not None and totals.net is not None

    net = totals.net.baseline

    assert net is not None
    assert net.value == pytest.approx(gross.value - rest_w * time.value)


def test_what_a_window_is_off_by_is_a_larger_part_of_net_energy() -> None:
    meter = replace(BOARD, window_error=0.01)
    side = at_rest(a_side(noise=0.0, meter=meter), 5.0)  # half of what the board draws

    net = compared(side, side).totals[0].net

    assert net is not None and net.baseline is not None and net.ratio is not None
    assert net.baseline.high / net.baseline.value - 1 == pytest.approx(2 * 0.0196, rel=0.05)
    assert net.ratio.high - 1 == pytest.approx(2 * 0.0196 * 2**0.5, rel=0.05)


def test_a_side_that_was_not_measured_at_rest_has_no_net_energy() -> None:
    totals = compared(at_rest(a_side(meter=BOARD), 1.0), a_side(meter=BOARD)).totals[0]

    assert totals.net is not None
    assert totals.net.baseline is not None
    assert (totals.net.candidate, totals.net.ratio) == (None, None)


def test_net_energy_below_zero_is_told_and_has_no_ratio() -> None:
    side = at_rest(a_side(meter=BOARD), 1000.0)
    net = compared(side, side).totals[0].net

    assert net is not None and net.baseline is not None
    assert net.baseline.value < 0
    assert net.ratio is None


def test_a_modelled_and_a_measured_host_have_no_ratio_and_keep_their_provenance() -> None:
    rapl = replace(HOST, name="rapl", provenance=Provenance.MEASURED)
    spinning = on_a_board(host_w=9.0)
    spinning = replace(spinning, origin=replace(spinning.origin, host_meter=rapl))

    found = compared(on_a_board(host_w=2.0), spinning)

    host = found.totals[0].host
    assert host is not None and host.baseline is not None and host.candidate is not None
    assert host.ratio is None
    assert [side.provenance for side in (host.baseline, host.candidate)] == ["modelled", "measured"]
    assert (found.host_findings, found.verdict) == ((), "no difference")
    assert any("modelled, modelled and rapl, measured" in note for note in found.notes)


def test_a_host_that_only_one_side_read_is_named() -> None:
    found = compared(a_side(meter=BOARD), on_a_board(host_w=2.0))

    assert any("only the host of the candidate was read" in note for note in found.notes)


def test_what_is_no_pair_gross_is_none_net() -> None:
    def warm(start_c: float) -> tuple[Conditions, ...]:
        return (
            Conditions(
                phase=PREFILL, round=0, moment="before", time_s=0.0, temperature_c=start_c, clock_hz=None,
                throttle="", foreign=None,
            ),
        )  # fmt: skip

    cold, hot = (replace(at_rest(a_side(meter=BOARD), 1.0), conditions=warm(c)) for c in (40.0, 60.0))
    total = compared(cold, hot).totals[0]

    assert total.cost_ratio is not None and total.net is not None and total.net.ratio is not None
    assert total.net.ratio.n == total.cost_ratio.n == 6


def test_the_windows_of_either_side_widen_a_ratio() -> None:
    exact, coarse = BOARD, replace(BOARD, window_error=0.01)
    one, other = (a_side(noise=0.0, meter=meter) for meter in (exact, coarse))

    for pair in ((one, other), (other, one)):
        ratio = compared(*pair).totals[0].cost_ratio
        assert ratio is not None
        assert ratio.high - 1 == pytest.approx(0.0196, rel=0.05)
