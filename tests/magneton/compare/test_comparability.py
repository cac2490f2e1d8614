from dataclasses import replace
from typing import Any

import pytest
from comparisons import a_side
from profiles import an_origin

from magneton.compare.comparability import check_comparable, differences, is_paired, notes
from magneton.errors import EXIT_UNRESOLVED, Incomparable
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance
from magneton.workload import Workload

METER = MeterInfo(name="modelled", unit="J", provenance=Provenance.MODELLED)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model": "gpt2-tiny"}, "model"),
        ({"config_hash": "other"}, "model configuration"),
        ({"device": "another processor"}, "device"),
        ({"device_kind": "cuda"}, "device kind"),
        ({"meter": replace(METER, name="nvml")}, "meter"),
        ({"meter": replace(METER, unit="B")}, "meter's unit"),
        ({"meter": replace(METER, provenance=Provenance.MEASURED)}, "meter's provenance"),
        ({"meter": replace(METER, scale_high=1.2)}, "meter's scale"),
        ({"workload": Workload(phases=("prefill",), batch=3)}, "batch"),
        ({"workload": Workload(phases=("decode",))}, "phases"),
        ({"workload": Workload(phases=("prefill",), dtype="float16")}, "dtype"),
        ({"workload": Workload(phases=("prefill",), seed=1)}, "seed"),
        ({"threads": 2}, "number of threads"),
        ({"grad_mode": "grad"}, "gradients"),
    ],
)
def test_another_field_is_refused_by_name_with_both_values(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Incomparable) as refused:
        check_comparable(a_side(), a_side(**changes))

    assert f"{field} is " in str(refused.value)
    assert "in the baseline" in str(refused.value)
    assert refused.value.exit_code == EXIT_UNRESOLVED


def test_two_callables_of_other_names_may_be_compared() -> None:
    mine: dict[str, Any] = {"config_hash": "", "weights_hash": "", "system": "callable"}

    check_comparable(a_side(model="one.py:build", **mine), a_side(model="two.py:build", **mine))


def test_other_weights_are_noted_and_do_not_forbid_the_comparison() -> None:
    baseline, candidate = a_side(), a_side(weights_hash="other")

    check_comparable(baseline, candidate)

    assert any("weights differ" in note for note in notes(baseline, candidate))


def test_sides_of_no_session_are_never_called_paired() -> None:
    assert is_paired(an_origin(session="one"), an_origin(session="one"))
    assert not is_paired(an_origin(session=""), an_origin(session=""))
    assert not is_paired(an_origin(session="one"), an_origin(session="two"))
    assert any("apart" in note for note in notes(a_side(session=""), a_side(session="")))


def test_differences_name_what_only_one_side_has() -> None:
    found = differences(
        an_origin(options={"attn": "eager"}, flags={"tf32": "True"}),
        an_origin(flags={"tf32": "False"}),
    )

    assert [(d.where, d.name, d.baseline, d.candidate) for d in found] == [
        ("option", "attn", "eager", None),
        ("flag", "tf32", "True", "False"),
    ]
