"""What a profile must never say about itself, each with the words that name it."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from profiles import a_value, an_operator, an_origin, profiles, small_profile

from magneton.errors import InvalidProfile
from magneton.profile.checks import check
from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo
from magneton.profile.sketches import Sketches, stack_sketches
from magneton.quantity import Provenance
from magneton.workload import Workload


@settings(deadline=None)
@given(profiles())
def test_every_profile_that_the_strategies_draw_is_valid(profile: Profile) -> None:
    check(profile)


def refusal(profile: Profile) -> str:
    with pytest.raises(InvalidProfile) as caught:
        check(profile)
    return str(caught.value)


def changed_row(table: str, index: int, **changes: Any) -> Profile:
    base = small_profile()
    rows = list(getattr(base, table))
    rows[index] = replace(rows[index], **changes)
    return replace(base, **{table: tuple(rows)})


BAD_ROWS: list[tuple[str, int, dict[str, Any], str]] = [
    ("operators", 1, {"op_id": 5}, "operator 1 has the id 5; ids are row numbers"),
    ("operators", 1, {"phase": "decode"}, "operator 1 belongs to the phase 'decode'"),
    ("operators", 1, {"inputs": (4,)}, "operator 1 refers to value 4 of 4"),
    ("operators", 1, {"inputs": (-1,)}, "operator 1 refers to value -1 of 4"),
    ("operators", 1, {"inputs": (2,)}, "operator 1 reads value 2, which operator 1 has yet to make"),
    ("operators", 1, {"inputs": (3,)}, "operator 1 reads value 3, which operator 2 has yet to make"),
    ("operators", 2, {"outputs": (3, 1)}, "operator 2 gives value 1, which is neither its own"),
    ("operators", 2, {"mutated": (2,)}, "operator 2 overwrites value 2, which is none of its outputs"),
    ("operators", 2, {"outputs": ()}, "value 3 comes from operator 2, which has no such output"),
    ("operators", 0, {"effect": "magic"}, "operator 0 has the effect 'magic'"),
    ("operators", 0, {"stack_id": 1}, "operator 0 refers to stack 1 of 1"),
    ("operators", 0, {"key_id": 3}, "operator 0 refers to key 3 of 3"),
    ("operators", 0, {"flops": -1}, "operator 0 has the flops -1"),
    ("operators", 0, {"bytes_moved": 2**63}, "operator 0 has the bytes_moved 9223372036854775808"),
    ("operators", 0, {"duration_s": -0.5}, "operator 0 has the duration_s -0.5"),
    ("operators", 0, {"duration_s": float("inf")}, "operator 0 has the duration_s inf"),
    ("values", 2, {"value_id": 1}, "value 2 has the id 1; ids are row numbers"),
    ("values", 2, {"role": "\x1b[1m"}, r"value 2 has the role '\x1b[1m'"),
    ("values", 2, {"shape": (2, -4)}, "value 2 has the shape '(2, -4)'"),
    ("values", 2, {"shape": (2**32, 2**32)}, "value 2 has the shape"),
    ("values", 2, {"shape": (2,) * 65}, "value 2 has 65 dimensions"),
    ("values", 2, {"version": -1}, "value 2 has the version -1"),
    ("values", 2, {"drift": -0.1}, "value 2 has the drift -0.1"),
    ("values", 2, {"drift": float("nan")}, "value 2 has the drift nan"),
    ("values", 2, {"storage_id": 2**63}, "value 2 has the storage_id"),
    ("values", 2, {"producer": 3}, "value 2 comes from operator 3 of 3"),
    ("keys", 1, {"key_id": 0}, "key 1 has the id 0; ids are row numbers"),
    ("kernels", 1, {"op_id": 3}, "kernel 1 refers to operator 3 of 3"),
    ("kernels", 1, {"duration_s": -1.0}, "kernel 1 has the duration_s -1.0"),
    ("kernels", 1, {"start_s": float("nan")}, "kernel 1 has the start_s nan"),
    ("kernels", 1, {"phase": ""}, "kernel 1 belongs to the phase ''"),
    ("blocks", 0, {"pass_": "replay"}, "block 0 belongs to the pass 'replay'"),
    ("blocks", 0, {"phase": "call"}, "block 0 belongs to the phase 'call'"),
    ("blocks", 0, {"round": -1}, "block 0 has the round -1"),
    ("blocks", 0, {"steps": 0}, "block 0 has the steps 0"),
    ("blocks", 0, {"start_s": float("-inf")}, "block 0 has the start_s -inf"),
    ("blocks", 0, {"duration_s": 0.0}, "block 0 has the duration_s 0.0"),
    ("blocks", 0, {"energy_j": -0.5}, "block 0 has the energy_j -0.5"),
    ("blocks", 0, {"energy_j": 1.1e30}, "block 0 has the energy_j 1.1e+30"),
    ("blocks", 0, {"duration_s": 1.1e30}, "block 0 has the duration_s 1.1e+30"),
    ("blocks", 0, {"energy_j": float("nan")}, "block 0 has the energy_j nan"),
    ("replays", 4, {"key_id": 3}, "replay 4 refers to key 3 of 3"),
    ("replays", 4, {"executions": 0}, "replay 4 has the executions 0"),
    ("replays", 4, {"duration_s": -1.0}, "replay 4 has the duration_s -1.0"),
    ("replays", 4, {"energy_j": float("inf")}, "replay 4 has the energy_j inf"),
    ("scopes", 0, {"phase": "decode"}, "scope 0 belongs to the phase 'decode'"),
    ("scopes", 0, {"duration_s": -0.5}, "scope 0 has the duration_s -0.5"),
    ("scopes", 0, {"duration_s": float("nan")}, "scope 0 has the duration_s nan"),
    ("scopes", 0, {"samples": -1}, "scope 0 has the samples -1"),
]


@pytest.mark.parametrize(
    ("table", "index", "changes", "message"), BAD_ROWS, ids=[f"{t}-{'-'.join(c)}" for t, _, c, _ in BAD_ROWS]
)
def test_a_wrong_row_is_named(table: str, index: int, changes: dict[str, Any], message: str) -> None:
    assert message in refusal(changed_row(table, index, **changes))


BAD_SKETCHES: list[tuple[str, Callable[[np.ndarray], np.ndarray], str]] = [
    ("rms", lambda rms: rms[:-1], "has rms as float64[3], not float64[4]"),
    ("cos_sum", lambda sums: sums[:, :8], "has cos_sum as float64[4, 8], not float64[4, 9]"),
    ("projection", lambda sums: sums[:, 0], "has projection as float64[4], not float64[4, 2]"),
    ("rms", lambda rms: rms.astype(np.float32), "has rms as float32[4], not float64[4]"),
    ("known", lambda known: known.astype(np.int8), "has known as int8[4], not bool[4]"),
    ("sin_sum", lambda sums: np.full_like(sums, np.nan), "has a sin_sum that is not finite"),
    ("rms", lambda rms: rms - 1e6, "has a negative rms"),
    ("huge", lambda huge: huge - 1, "has a negative huge"),
]


@pytest.mark.parametrize(("column", "change", "message"), BAD_SKETCHES)
def test_a_wrong_table_of_sketches_is_named(
    column: str, change: Callable[[np.ndarray], np.ndarray], message: str
) -> None:
    base = small_profile()
    sketches: Sketches = replace(base.sketches, **{column: change(getattr(base.sketches, column))})
    assert message in refusal(replace(base, sketches=sketches))


def meter(*, scale_low: float = 1.0, scale_high: float = 1.0) -> MeterInfo:
    return MeterInfo(
        name="nvml", unit="J", provenance=Provenance.MEASURED, scale_low=scale_low, scale_high=scale_high
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workload": Workload(phases=())}, "phases"),
        ({"workload": Workload(phases=("prefill", "prefill"))}, "phases"),
        ({"workload": Workload(phases=("prefill", ""))}, "phases"),
        ({"workload": Workload(phases=("prefill",), batch=0)}, "batch 0"),
        ({"workload": Workload(phases=("prefill",), prompt_tokens=-1)}, "prompt_tokens -1"),
        ({"workload": Workload(phases=("prefill",), decode_steps=-1)}, "decode_steps -1"),
        ({"workload": Workload(phases=("prefill",), seed=2**63)}, "seed"),
        ({"threads": 0}, "threads 0"),
        ({"meter": meter(scale_low=0.0)}, "scale lies between 0.0 and 1.0"),
        ({"meter": meter(scale_high=0.5)}, "scale lies between 1.0 and 0.5"),
        ({"meter": meter(scale_high=float("inf"))}, "scale lies between 1.0 and inf"),
        ({"meter": meter(scale_low=float("nan"))}, "scale lies between nan and 1.0"),
    ],
)
def test_a_wrong_origin_is_named(changes: dict[str, Any], message: str) -> None:
    assert message in refusal(small_profile(origin=an_origin(**changes)))


def test_too_many_outputs_and_outputs_without_a_name_are_refused() -> None:
    assert "300 outputs" in refusal(small_profile(outputs={str(i): np.zeros(1) for i in range(300)}))
    assert "without a name" in refusal(small_profile(outputs={"": np.zeros(1)}))


def test_a_scope_has_one_row_for_each_phase() -> None:
    (row,) = small_profile().scopes
    twice = (row, replace(row, duration_s=2.0))
    assert "the survey has the scope 'sampling' of 'prefill' twice" in refusal(small_profile(scopes=twice))
    check(small_profile(scopes=(row, replace(row, scope="scheduling"))))


def test_an_operator_may_hand_its_input_on() -> None:
    """A framework's no-op returns the very tensor that it was given."""
    base = small_profile(operators=1)
    handed_on = an_operator(1, inputs=(0, 1), outputs=(1, 0), key_id=0)
    check(replace(base, operators=(*base.operators, handed_on)))


def test_a_value_that_no_operator_touches_is_no_fault() -> None:
    base = small_profile(operators=0)
    check(replace(base, values=(a_value(0, role="parameter", name="unused"),)))


def test_one_operator_with_very_many_operands_is_checked_in_linear_time() -> None:
    """A file of a few kilobytes can hold it; a pass over all outputs for each value would take hours."""
    many = tuple(range(1, 100_001))
    split = an_operator(0, inputs=(0,), outputs=many, mutated=many)
    join = an_operator(1, inputs=many, outputs=many)
    values = (a_value(0), *(a_value(k, producer=0) for k in many))
    zeros = stack_sketches([None] * len(values))
    base = small_profile(operators=1)
    started_s = time.process_time()
    check(replace(base, operators=(split, join), values=values, sketches=zeros))
    assert time.process_time() - started_s < 20
