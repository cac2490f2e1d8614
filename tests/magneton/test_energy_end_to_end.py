"""Whole recordings over a simulated board in real time: from workers and meters to comparison and report.

What the board truly spent is known at the end of each step, so figures are held against it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from board_recording import BRIEF, BoardRoom
from board_system import SYSTEM, Spent, read_truth
from commands import Left
from simulated_board import A100, H100, Board, compiler

from magneton.compare.model import Comparison, Criteria
from magneton.compare.profiles import compare_profiles
from magneton.profile.model import Profile
from magneton.profile.store import load, save
from magneton.quantity import Provenance
from magneton.record.plan import RecordPlan
from magneton.record.session import record_pair

# In real time: a machine that is busy with something else wakes the host late, and the step really is longer.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc"),
]

GAIN = 1.03  # of the board's sensors: ratios are free of it
CLOSE = 0.015
LOOSE = 0.03  # of times of a busy machine
TABLE = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Two sides in one session, and what the board truly spent meanwhile."""

    folder: Path
    baseline: Profile
    candidate: Profile
    truth: tuple[Spent, ...]
    comparison: Comparison

    @property
    def sides(self) -> tuple[Profile, Profile]:
        return self.baseline, self.candidate


def recorded(
    room: BoardRoom, *, system: str = SYSTEM, plan: RecordPlan = BRIEF, **candidate: str
) -> Recorded:
    """The usual step against another one, recorded by calls and kept as files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGNETON_CACHE", str(room.cache))
        pair = record_pair(room.request(system), room.request(system, **candidate), plan)
    for profile, name in zip(pair, ("baseline", "candidate"), strict=True):
        save(profile, room.folder / f"{name}.mgn")
    return kept(room, room.folder)


def kept(room: BoardRoom, folder: Path) -> Recorded:
    """What lies in ``folder`` as files."""
    pair = load(folder / "baseline.mgn"), load(folder / "candidate.mgn")
    return Recorded(
        folder=folder,
        baseline=pair[0],
        candidate=pair[1],
        truth=read_truth(room.folder / "truth"),
        comparison=compare_profiles(*pair, Criteria()),
    )


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardRoom]:
    with BoardRoom(tmp_path_factory.mktemp("energy") / "room", Board(shape=A100, gain=GAIN)) as found:
        yield found


@pytest.fixture(scope="module")
def spun(room: BoardRoom) -> Recorded:
    """A host that sleeps while the board works, against one that spins."""
    return recorded(room, wait="spin")


def true_powers_w(profile: Profile, truth: tuple[Spent, ...]) -> list[tuple[float, float]]:
    """Of each clean block: mean power as it was read, and as it was."""
    stopped_s = {row.round: row.time_s for row in profile.conditions if row.moment == "after"}
    found: list[tuple[float, float]] = []
    for block in profile.blocks:
        if block.pass_ != "clean" or block.energy_j is None:
            continue
        until_s = stopped_s[block.round]
        true_w = mean_power_w(truth, until_s - block.duration_s, until_s)
        found.append((block.energy_j / block.duration_s, true_w))
    return found


def mean_power_w(truth: tuple[Spent, ...], since_s: float, until_s: float) -> float:
    """What the board drew over the steps that ended between these moments."""
    steps = [step for step in truth if since_s <= step.time_s <= until_s]
    first, last = steps[0], steps[-1]
    return (last.energy_j - first.energy_j) / (last.time_s - first.time_s)


def true_step_j(profile: Profile, truth: tuple[Spent, ...]) -> float:
    """Mean energy of a step over all clean blocks, by the true power."""
    duration_s = fmean(b.duration_s / b.steps for b in profile.blocks if b.pass_ == "clean")
    return duration_s * fmean(true_w for _, true_w in true_powers_w(profile, truth))


def true_ratio(recording: Recorded) -> float:
    one, other = (true_step_j(profile, recording.truth) for profile in recording.sides)
    return other / one


def test_every_block_shows_the_power_that_the_board_drew(spun: Recorded) -> None:
    for profile in spun.sides:
        powers = true_powers_w(profile, spun.truth)
        assert len(powers) == BRIEF.rounds
        for read_w, true_w in powers:
            assert read_w == pytest.approx(GAIN * true_w, rel=CLOSE)


def test_boards_spend_alike_and_the_host_that_spins_is_found(spun: Recorded) -> None:
    comparison = spun.comparison
    (total,) = comparison.totals
    (finding,) = comparison.host_findings

    assert comparison.verdict == "findings"
    assert (finding.costly, finding.device_alike, finding.phase) == ("candidate", True, "prefill")
    assert finding.ratio.value > 5
    assert comparison.findings == ()
    assert total.net is not None and total.net.ratio is not None
    assert total.net.ratio.value == pytest.approx(1.0, abs=LOOSE)  # the work itself is the same
    assert [cause.name for cause in finding.causes] == ["wait"]


def test_energy_at_rest_is_read_before_and_after_and_net_is_what_is_above_it(spun: Recorded) -> None:
    for profile, net in zip(spun.sides, _nets(spun.comparison), strict=True):
        assert [row.moment for row in profile.idle] == ["before", "after"]
        powers_w = [row.power_w for row in profile.idle if row.power_w is not None]
        assert len(powers_w) == 2
        assert all(GAIN * A100.idle_w <= power_w <= GAIN * (A100.idle_w + 8) for power_w in powers_w)
        clean = [block for block in profile.blocks if block.pass_ == "clean"]
        gross_j = fmean(block.energy_j / block.steps for block in clean if block.energy_j is not None)
        step_s = fmean(block.duration_s / block.steps for block in clean)
        assert net == pytest.approx(gross_j - fmean(powers_w) * step_s, rel=CLOSE)


def _nets(comparison: Comparison) -> tuple[float, float]:
    (total,) = comparison.totals
    assert total.net is not None and total.net.baseline is not None and total.net.candidate is not None
    return total.net.baseline.value, total.net.candidate.value


def test_a_profile_says_under_which_conditions_it_was_measured(spun: Recorded) -> None:
    for profile in spun.sides:
        moments = [(row.round, row.moment) for row in profile.conditions]
        assert sorted(moments) == [(r, m) for r in range(BRIEF.rounds) for m in ("after", "before")]
        for row in profile.conditions:
            assert row.temperature_c is not None and 25 < row.temperature_c < 80
            assert row.clock_hz == A100.sm_mhz * 1e6
            assert (row.throttle, row.foreign) == ("", 0)
        for before, after in pairwise(profile.samples):
            assert before.time_s < after.time_s
        assert {sample.round for sample in profile.samples} == set(range(BRIEF.rounds))
        assert all(A100.idle_w < sample.power_w < 400 for sample in profile.samples)
        assert profile.doubts == ()


def test_an_origin_names_board_driver_and_both_meters(spun: Recorded) -> None:
    for profile in spun.sides:
        origin = profile.origin
        assert (origin.meter.name, origin.meter.unit, origin.meter.provenance) == (
            "nvml",
            "J",
            Provenance.MEASURED,
        )
        assert "NVIDIA A100-SXM4-80GB" in origin.meter.source
        assert origin.meter.scale_low <= GAIN <= origin.meter.scale_high
        assert origin.host_meter is not None
        assert origin.driver == "580.65.06"
        assert origin.replay_cache == "warm"
        assert origin.session == spun.baseline.origin.session != ""


def test_operators_add_up_to_the_step(spun: Recorded) -> None:
    for profile in spun.sides:
        operators_j = sum(row.energy_j for row in profile.replays if row.energy_j is not None)
        assert len(profile.replays) == 2
        assert operators_j == pytest.approx(GAIN * true_step_j(profile, spun.truth), rel=0.06)


def test_a_kept_recording_is_shown_and_compared_as_it_was(room: BoardRoom, spun: Recorded) -> None:
    shown = room.run("show", spun.folder / "baseline.mgn")
    compared = room.run("compare", spun.folder / "baseline.mgn", spun.folder / "candidate.mgn")

    for left in (shown, compared):
        assert left.code == 0, left.stderr
        assert max(map(len, left.stdout.splitlines())) <= TABLE
        assert "NVIDIA A100-SXM4-80GB" in left.stdout
    assert "above the device at rest" in shown.stdout and "the host spends" in shown.stdout
    assert "the candidate's host spends" in compared.stdout
    assert f"Verdict: findings: {spun.comparison.reason}" in compared.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Of a whole step."""

    value: float
    low: float
    high: float


def ratio_of(recording: Recorded) -> Ratio:
    (total,) = recording.comparison.totals
    ratio = total.cost_ratio
    assert ratio is not None
    return Ratio(value=ratio.value, low=ratio.low, high=ratio.high)


def compared(tmp_path: Path, candidate: str) -> tuple[Left, Recorded]:
    """The usual step against ``candidate`` through the command line, in three rounds."""
    with BoardRoom(tmp_path / "room", Board(shape=H100, gain=GAIN, counter="sampled")) as room:
        left = room.measure("compare", "board", candidate, "--save", "kept", "--rounds", "3").left()
        assert (room.folder / "kept" / "candidate.mgn").exists(), left.stderr
        return left, kept(room, room.folder / "kept")


def test_equal_sides_do_not_differ(tmp_path: Path) -> None:
    left, found = compared(tmp_path, "board")

    assert left.code == 0, left.stdout
    assert "Verdict: no difference" in left.stdout
    assert ratio_of(found).low <= 1.0 <= ratio_of(found).high * (1 + CLOSE)


def test_a_fifth_more_power_at_equal_time_is_found_and_its_interval_holds_the_truth(tmp_path: Path) -> None:
    left, found = compared(tmp_path, "board:attend_w=360,project_w=240")
    ratio, true = ratio_of(found), true_ratio(found)

    assert left.code == 0 and "Verdict: findings" in left.stdout
    assert true == pytest.approx(1.2, abs=0.04)
    assert ratio.low <= true <= ratio.high
    assert {finding.costly for finding in found.comparison.findings} == {"candidate"}
    assert {finding.outcome for finding in found.comparison.findings} == {"waste"}


def test_what_is_slower_and_leaner_is_a_trade_off(tmp_path: Path) -> None:
    left, found = compared(tmp_path, "board:attend_w=160,attend_ms=14")
    ratio = ratio_of(found)

    assert left.code == 0, left.stdout
    assert [(f.costly, f.outcome) for f in found.comparison.findings] == [("baseline", "trade-off")]
    assert ratio.low <= true_ratio(found) <= ratio.high
    assert _nets(found.comparison)[0] > _nets(found.comparison)[1]


def test_zeus_reads_the_board_for_a_recording(tmp_path: Path) -> None:
    pytest.importorskip("zeus")
    with BoardRoom(tmp_path / "room", Board(shape=A100, gain=GAIN)) as room:
        left = room.measure("record", "board", "-o", "zeus.mgn", "--rounds", "3", meter="zeus").left()
        assert left.code == 0, left.stderr
        profile, truth = load(room.folder / "zeus.mgn"), read_truth(room.folder / "truth")

    assert profile.origin.meter.name == "zeus" and "A100" in profile.origin.meter.source
    assert profile.origin.host_meter is not None
    blocks = [block for block in profile.blocks if block.pass_ == "clean"]
    assert len(blocks) == 3
    for block in blocks:  # windows of two seconds that are aligned with nothing
        assert block.energy_j is not None
        true_w = mean_power_w(truth, block.start_s, block.start_s + block.duration_s)
        assert block.energy_j / block.duration_s == pytest.approx(GAIN * true_w, rel=0.07)
    assert [row.power_w is not None for row in profile.idle] == [True, True]


def test_operators_of_pytorch_in_a_loop_add_up_to_the_step_and_show_which_one_differs(tmp_path: Path) -> None:
    with BoardRoom(tmp_path / "room", Board(shape=A100, gain=GAIN)) as room:
        plan = replace(BRIEF, replay_rounds=3)
        found = recorded(room, system="board_torch:TorchBoardSystem", plan=plan, attend_w="390")

    (finding,) = found.comparison.findings
    assert [row.name for row in found.baseline.operators] == ["board.attend.default", "board.project.default"]
    assert (finding.costly, finding.outcome) == ("candidate", "waste")
    assert finding.ratio is not None
    assert finding.ratio.value == pytest.approx(
        390 / 300, rel=0.02
    )  # the board rests while the host wakes up
    for profile, step_j in zip(found.sides, step_costs_j(found.comparison), strict=True):
        operators_j = sum(row.energy_j or 0.0 for row in profile.replays) / plan.replay_rounds
        assert operators_j == pytest.approx(step_j, rel=0.05)


def step_costs_j(comparison: Comparison) -> tuple[float, float]:
    (total,) = comparison.totals
    assert total.baseline_cost is not None and total.candidate_cost is not None
    return total.baseline_cost.value, total.candidate_cost.value
