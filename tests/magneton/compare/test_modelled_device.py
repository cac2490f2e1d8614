"""Two runs under the model of a device: what both sides share cancels, and what one does more shows."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled_work import Call, addition, copy, in_one_region, product, profile_of

from magneton.compare.comparability import check_comparable
from magneton.compare.ledger import Ledger
from magneton.compare.model import Comparison, Criteria
from magneton.compare.profiles import compare
from magneton.errors import Incomparable
from magneton.meters.devices import device_names, read_model
from magneton.profile.device import DeviceModel
from magneton.profile.model import OpId, Profile
from magneton.quantity import Quantity
from magneton.statistics import Spread, estimate_ratio
from magneton.workload import PREFILL

H200 = read_model("h200")
LAYER = (product(2048), addition(1 << 22), product(2048, m=64), copy(1 << 20))
calls = st.one_of(
    st.builds(product, st.integers(1, 4096), dtype=st.sampled_from(["bfloat16", "float32", "float64"])),
    st.builds(addition, st.integers(1, 1 << 26)),
    st.builds(copy, st.integers(1, 1 << 26)),
)


def of(baseline: Profile, candidate: Profile, *, split: int = 0, **criteria: Any) -> Comparison:
    return compare(baseline, candidate, in_one_region(baseline, candidate, split), Criteria(**criteria))


def width(figure: Quantity | None) -> float:
    """How far the bounds lie apart, on a logarithmic scale."""
    assert figure is not None
    return math.log(figure.high / figure.low)


def cost_of(profile: Profile) -> Quantity | None:
    return Ledger(profile).total(PREFILL)


@given(st.lists(calls, min_size=1, max_size=5), st.sampled_from(device_names()))
def test_a_profile_against_itself_is_exactly_the_same(work: list[Call], name: str) -> None:
    profile = profile_of(work, read_model(name))
    comparison = of(profile, profile)

    (total,) = comparison.totals
    ratios = [total.cost_ratio, *(row.ratio for row in comparison.rows if row.kind == "region")]
    assert {(ratio.low, ratio.value, ratio.high) for ratio in ratios if ratio is not None} == {
        (1.0, 1.0, 1.0)
    }
    assert (comparison.verdict, comparison.findings) == ("no difference", ())


def test_joules_have_a_range_and_no_unit_of_time() -> None:
    comparison = of(profile_of(LAYER, H200), profile_of(LAYER, H200))

    (total,) = comparison.totals
    assert 0.05 < width(total.baseline_cost) < 1.5
    assert total.baseline_duration_s is None
    assert total.duration_ratio is None


@pytest.mark.parametrize("name", device_names())
def test_a_ratio_is_known_better_than_joules(name: str) -> None:
    baseline = profile_of((*LAYER, copy(1 << 22)), read_model(name))
    candidate = profile_of(LAYER, read_model(name))

    (total,) = of(baseline, candidate).totals

    assert 0 < width(total.cost_ratio) < 0.5 * width(total.baseline_cost)


@pytest.mark.parametrize("name", device_names())
def test_a_copy_more_on_one_side_is_certain(name: str) -> None:
    device = read_model(name)
    lean = (addition(1 << 24), copy(1 << 24))
    baseline, candidate = profile_of((*lean, copy(1 << 24)), device), profile_of(lean, device)
    ledgers = Ledger(baseline), Ledger(candidate)
    sides = [ledger.by_round([operator.op_id for operator in ledger.profile.operators]) for ledger in ledgers]
    assert sides[0] is not None
    assert sides[1] is not None

    estimate = estimate_ratio(sides[1].tolist(), sides[0].tolist(), paired=False, spread=Spread.DRAWS)

    assert estimate is not None
    assert estimate.p_above(0.1) < 0.05
    (finding,) = of(baseline, candidate).findings
    assert (finding.outcome, finding.costly) == ("waste", "baseline")


def test_another_kernel_for_the_same_bytes_is_not_certain() -> None:
    """The form of the model is not known well enough to tell 12 % between two kinds of kernels."""
    other = replace(copy(1 << 24), name="aten.contiguous.default", changes={"bytes_moved": 150_000_000})

    comparison = of(profile_of([copy(1 << 24)], H200), profile_of([other], H200))

    assert comparison.verdict == "unresolved"


def test_tf32_is_seen_from_a_processor() -> None:
    """Flags that mean nothing where the run was made decide on which units the device computes."""
    work = [product(4096, dtype="float32")]
    plain = profile_of(work, H200, flags={"torch.backends.cuda.matmul.allow_tf32": "False"})
    fast = profile_of(work, H200, flags={"torch.backends.cuda.matmul.allow_tf32": "True"})

    (finding,) = of(plain, fast).findings

    assert (finding.outcome, finding.costly) == ("waste", "baseline")
    assert finding.ratio is not None
    assert finding.ratio.low > 3


def test_rows_sum_to_the_step_and_leave_nothing_over() -> None:
    comparison = of(profile_of(LAYER, H200), profile_of((*LAYER, copy(1 << 22)), H200), split=3)

    (total,) = comparison.totals
    (residual,) = [row for row in comparison.rows if row.kind == "residual"]
    costs = [row.candidate.cost for row in comparison.rows if row.candidate is not None]
    assert total.candidate_cost is not None
    assert sum(cost.value for cost in costs if cost is not None) == pytest.approx(total.candidate_cost.value)
    for side in (residual.baseline, residual.candidate):
        assert side is not None
        assert side.cost is not None
        assert (side.cost.low, side.cost.value, side.cost.high) == (0.0, 0.0, 0.0)


def test_the_least_that_an_operator_costs_is_its_least_part_of_the_step() -> None:
    """A step of copies alone: whatever a byte costs, one of four copies is a quarter of it."""
    ledger = Ledger(profile_of([copy(1 << 26)] * 4, H200))
    total = ledger.total(PREFILL)

    assert total is not None
    assert width(total) > 0.2
    assert ledger.least([OpId(0)]) == pytest.approx(total.value / 4)


def with_device(profile: Profile, device: DeviceModel) -> Profile:
    meter = replace(profile.origin.meter, device=device)
    return replace(profile, origin=replace(profile.origin, meter=meter))


def test_other_coefficients_under_the_same_name_are_refused() -> None:
    profile = profile_of(LAYER, H200)
    other = with_device(profile, replace(H200, tdp_w=H200.tdp_w.times(1.01)))

    with pytest.raises(Incomparable, match="meter's coefficients") as refused:
        check_comparable(profile, other)
    assert "device file" in refused.value.hint


def test_another_source_of_the_same_figures_is_no_obstacle() -> None:
    profile = profile_of(LAYER, H200)

    check_comparable(profile, with_device(profile, replace(H200, tdp_w=replace(H200.tdp_w, source="other"))))
