"""Attribution neither makes nor loses energy, and follows the meter's scale."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled_work import addition, copy, product, profile_of
from profiles import an_operator, an_origin, profiles, small_profile

from magneton.meters.devices import read_model
from magneton.profile.cost import attribute, clean_costs, count_of, operator_costs, replayed_s
from magneton.profile.model import BlockReading, KeyId, Profile, ReplayReading
from magneton.profile.modelling import DRAWS
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance
from magneton.statistics import Spread
from magneton.workload import DECODE, PREFILL

JOULES = MeterInfo(name="modelled", unit="J", provenance=Provenance.MODELLED)
BYTES = MeterInfo(name="counted:bytes", unit="B", provenance=Provenance.COUNTED)


def measured_by(profile: Profile, meter: MeterInfo) -> Profile:
    return replace(profile, origin=replace(profile.origin, meter=meter))


def a_block(round_: int, **changes: Any) -> BlockReading:
    known: dict[str, Any] = {
        "pass_": "clean",
        "phase": PREFILL,
        "round": round_,
        "start_s": 0.0,
        "steps": 2,
        "duration_s": 1.0,
        "energy_j": 3.0,
    }
    return BlockReading(**(known | changes))


def a_replay(key: int, round_: int, energy_j: float | None, executions: int = 1) -> ReplayReading:
    return ReplayReading(
        key_id=KeyId(key), round=round_, executions=executions, duration_s=1e-3, energy_j=energy_j
    )


def with_power_times(profile: Profile, k: float) -> Profile:
    def times_k(energy_j: float | None) -> float | None:
        return None if energy_j is None else k * energy_j

    return replace(
        profile,
        blocks=tuple(replace(block, energy_j=times_k(block.energy_j)) for block in profile.blocks),
        replays=tuple(replace(replay, energy_j=times_k(replay.energy_j)) for replay in profile.replays),
    )


@given(profiles())
def test_attribution_neither_makes_nor_loses_energy(profile: Profile) -> None:
    for phase in profile.origin.workload.phases:
        share = attribute(profile, phase)

        assert share.attributed == pytest.approx(np.nansum(share.cost))
        assert len(share.unread) == np.isnan(share.cost).sum()
        if not np.isnan(share.total):
            assert share.attributed + share.unattributed == pytest.approx(share.total, rel=1e-9, abs=1e-3)


@given(profiles(), st.floats(0.01, 100))
def test_k_times_the_power_gives_k_times_the_energy(profile: Profile, k: float) -> None:
    profile = measured_by(profile, JOULES)
    louder = with_power_times(profile, k)

    for phase in profile.origin.workload.phases:
        one, other = attribute(profile, phase), attribute(louder, phase)
        np.testing.assert_allclose(other.cost, k * one.cost, rtol=1e-9)
        assert other.total == pytest.approx(k * one.total, nan_ok=True)
        assert other.attributed == pytest.approx(k * one.attributed)


@given(profiles())
def test_every_operator_has_a_column_and_every_replayed_round_a_row(profile: Profile) -> None:
    costs = operator_costs(profile)

    assert costs.cost.shape == (len(costs.rounds), len(profile.operators))
    assert costs.rounds == tuple(sorted(set(costs.rounds)))


def test_a_count_leaves_no_residual() -> None:
    profile = measured_by(small_profile(operators=3, energy_j=None), BYTES)

    share = attribute(profile, PREFILL)

    assert share.total == share.attributed == 3 * 64
    assert share.unattributed == 0
    assert share.unread == ()


def test_counts_need_no_clean_block() -> None:
    profile = measured_by(replace(small_profile(operators=2), blocks=()), BYTES)

    costs = clean_costs(profile, PREFILL)

    assert costs.cost.tolist() == [128.0]
    assert np.isnan(costs.duration_s).tolist() == [True]


def test_counts_keep_the_durations_of_the_clean_blocks() -> None:
    profile = measured_by(replace(small_profile(), blocks=(a_block(0), a_block(1, duration_s=4.0))), BYTES)

    costs = clean_costs(profile, PREFILL)

    assert costs.rounds == (0, 1)
    assert costs.duration_s.tolist() == [0.5, 2.0]


def test_clean_costs_are_per_step_and_blocks_of_one_round_are_one() -> None:
    blocks = (a_block(4), a_block(0, steps=4, energy_j=10.0), a_block(0, steps=1, energy_j=5.0))
    profile = replace(small_profile(), blocks=(*blocks, a_block(0, pass_="timeline", energy_j=99.0)))

    costs = clean_costs(profile, PREFILL)

    assert costs.rounds == (0, 4)
    assert costs.cost.tolist() == [3.0, 1.5]
    assert costs.duration_s.tolist() == [0.4, 0.5]


def test_a_block_without_a_reading_is_a_gap_and_not_zero() -> None:
    profile = replace(small_profile(), blocks=(a_block(0, energy_j=None), a_block(1)))

    costs = clean_costs(profile, PREFILL)

    assert np.isnan(costs.cost).tolist() == [True, False]
    assert attribute(profile, PREFILL).total == 1.5


def test_durations_fold_into_rounds_as_energies_do() -> None:
    """A key of two phases is read twice in a round: both readings count, for energy and for time."""
    short, long = a_replay(0, 0, 1.0, executions=3), replace(a_replay(0, 0, 5.0), duration_s=5e-3)
    profile = replace(small_profile(), replays=(short, long))
    own = [operator.op_id for operator in profile.operators if operator.key_id == 0]

    assert own
    assert replayed_s(profile, (0,))[0, own] == pytest.approx((3 * 1e-3 + 5e-3) / 4)
    assert operator_costs(measured_by(profile, JOULES)).cost[0, own] == pytest.approx((3 * 1.0 + 5.0) / 4)


def test_readings_of_one_key_in_one_round_count_by_their_executions() -> None:
    replays = (a_replay(0, 0, 1.0, executions=3), a_replay(0, 0, 5.0), a_replay(0, 1, None))
    profile = replace(small_profile(operators=2), replays=replays)

    costs = operator_costs(profile)

    assert costs.rounds == (0, 1)
    np.testing.assert_equal(costs.cost, [[2.0, np.nan], [np.nan, np.nan]])
    assert attribute(profile, PREFILL).unread == (1,)


def test_operators_of_one_key_cost_the_same() -> None:
    profile = small_profile(operators=3)
    same_key = tuple(replace(operator, key_id=KeyId(1)) for operator in profile.operators)

    costs = operator_costs(replace(profile, operators=same_key))

    assert (costs.cost == costs.cost[:, :1]).all()


def test_the_model_of_a_device_needs_no_reading_and_leaves_no_residual() -> None:
    profile = profile_of([product(256), addition(1000), copy(500)], read_model("h200"))

    costs, step, share = operator_costs(profile), clean_costs(profile, PREFILL), attribute(profile, PREFILL)

    assert costs.spread is Spread.DRAWS
    assert costs.cost.shape == (DRAWS, 3)
    assert (costs.cost > 0).all()
    np.testing.assert_allclose(step.cost, costs.cost.sum(axis=1))
    assert (share.unread, share.unattributed) == ((), 0.0)
    assert share.total == pytest.approx(step.cost.mean())


def test_durations_of_the_machine_that_recorded_are_not_those_of_the_device() -> None:
    profile = profile_of([product(256)], read_model("h200"))

    costs = clean_costs(replace(profile, blocks=(a_block(0), a_block(1))), PREFILL)

    assert len(costs.rounds) == len(costs.duration_s) == DRAWS
    assert np.isnan(costs.duration_s).all()


def test_phases_of_a_device_add_up_apart() -> None:
    profile = profile_of([product(256), addition(1000)], read_model("h200"))
    workload = replace(profile.origin.workload, phases=(PREFILL, DECODE))
    second = replace(profile.operators[1], phase=DECODE)
    profile = replace(
        profile,
        origin=replace(profile.origin, workload=workload),
        operators=(profile.operators[0], second),
    )

    drawn_j = operator_costs(profile).cost

    assert (clean_costs(profile, PREFILL).cost == drawn_j[:, 0]).all()
    assert (clean_costs(profile, DECODE).cost == drawn_j[:, 1]).all()


def test_each_counting_unit_reads_its_own_count() -> None:
    operator = an_operator(0, flops=7, bytes_moved=11)

    assert [count_of(operator, unit) for unit in ("FLOP", "B", "operators")] == [7, 11, 1]
    with pytest.raises(ValueError, match="J is read"):
        count_of(operator, "J")


def test_the_residual_may_be_negative() -> None:
    profile = replace(small_profile(operators=1), replays=(a_replay(0, 0, 5.0),), origin=an_origin())

    assert attribute(profile, PREFILL).unattributed == pytest.approx(-4.0)
