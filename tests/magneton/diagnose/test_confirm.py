"""A cause is confirmed only where setting it closes the gap, in a run that was otherwise the same."""

from dataclasses import replace

import pytest
from reruns import Laboratory

from magneton.compare.model import Difference, Finding
from magneton.diagnose.changes import change_for
from magneton.diagnose.confirm import confirm
from magneton.interventions import SetEnvironment, SetFlag, SetOption

FLAGS = ("torch.first", "torch.second", "torch.third")


def tried(laboratory: Laboratory) -> Finding:
    (finding,) = confirm(laboratory.comparison(), laboratory.pair(), laboratory.rerun).findings
    return finding


def verdicts(finding: Finding) -> list[tuple[tuple[str, ...], str]]:
    return [(tuple(cause.name for cause in trial.causes), trial.verdict) for trial in finding.trials]


def test_a_wrong_candidate_is_refuted_and_the_next_one_tried() -> None:
    laboratory = Laboratory(FLAGS, frozenset({"torch.second"}))
    finding = tried(laboratory)

    assert finding.confirmed and finding.costly == "baseline"
    assert verdicts(finding) == [(("torch.first",), "refuted"), (("torch.second",), "confirmed")]
    assert finding.trials[-1].saved is not None
    assert finding.trials[-1].saved.value == pytest.approx(finding.excess, rel=0.05)
    assert (finding.kind, laboratory.asked[0][0]) == ("misconfiguration", "baseline")


def test_settings_that_act_only_together_are_named_together() -> None:
    finding = tried(Laboratory(FLAGS, frozenset({"torch.first", "torch.third"})))

    assert finding.confirmed
    assert finding.trials[-1].causes == tuple(
        Difference(where="flag", name=name, baseline="costly", candidate="lean")
        for name in ("torch.first", "torch.third")
    )


def test_where_no_setting_is_behind_it_none_is_blamed() -> None:
    laboratory = Laboratory(FLAGS, frozenset(FLAGS))
    elsewhere = Laboratory(FLAGS, frozenset())
    comparison, profiles = laboratory.comparison(), laboratory.pair()
    (finding,) = confirm(comparison, profiles, elsewhere.rerun).findings
    assert not finding.confirmed
    assert {verdict for _, verdict in verdicts(finding)} == {"refuted"}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ({"broken": frozenset(FLAGS)}, "the model does not load"),
        ({"restless": True}, "other operators when it is run again"),
        ({"changes_outputs": True}, "output prefill.logits changes with it"),
        ({"session": ""}, "do not fit into memory at once"),
    ],
)
def test_a_run_that_says_nothing_confirms_nothing_and_refutes_nothing(
    kind: dict[str, object], why: str
) -> None:
    laboratory = Laboratory(FLAGS[:1], frozenset(FLAGS[:1]))
    comparison, profiles = laboratory.comparison(), laboratory.pair()
    (finding,) = confirm(comparison, profiles, replace(laboratory, **kind).rerun).findings  # pyright: ignore[reportArgumentType] - drawn by tests

    assert not finding.confirmed
    (trial,) = finding.trials
    assert trial.verdict == "untestable here" and why in trial.reason


def test_noise_wider_than_the_gap_tells_nothing() -> None:
    laboratory = Laboratory(FLAGS[:1], frozenset(FLAGS[:1]))
    comparison, profiles = laboratory.comparison(), laboratory.pair()
    (finding,) = confirm(comparison, profiles, replace(laboratory, noise=1.5).rerun).findings

    assert verdicts(finding) == [(("torch.first",), "untestable here")]


def test_one_recording_answers_for_all_findings() -> None:
    laboratory = Laboratory(FLAGS[:1], frozenset(FLAGS[:1]))
    comparison = laboratory.comparison()
    twice = replace(comparison, findings=comparison.findings * 2)

    assert all(finding.confirmed for finding in confirm(twice, laboratory.pair(), laboratory.rerun).findings)
    assert len(laboratory.asked) == 1


def test_how_a_setting_is_changed_follows_from_what_it_is() -> None:
    origin = Laboratory((), frozenset()).run(()).origin
    of_transformers = replace(origin, system="transformers")

    def change(where: str, name: str, baseline: str | None, candidate: str | None) -> object:
        cause = Difference(where=where, name=name, baseline=baseline, candidate=candidate)  # pyright: ignore[reportArgumentType] - drawn by tests
        return change_for(cause, "baseline", of_transformers)

    assert change("flag", "torch.x.allow_tf32", "False", "True") == SetFlag(
        name="torch.x.allow_tf32", value=True
    )
    assert change("flag", "torch.precision", "high", "3") == SetFlag(name="torch.precision", value=3)
    assert change("flag", "env.A_B", None, "1") == SetEnvironment(name="A_B", value="1")
    assert change("option", "attn_implementation", "eager", "sdpa") == SetOption(
        name="attn_implementation", value="sdpa"
    )
    unset = change("option", "attn_implementation", "eager", None)
    assert isinstance(unset, SetOption) and unset.value != "eager"
    for cannot in (
        ("flag", "env.A_B", "1", None),
        ("version", "torch", "1", "2"),
        ("flag", "config.x", "1", "2"),
    ):
        assert isinstance(change(*cannot), str)
