"""What lies between operators, for people."""

import io
from dataclasses import replace

import pytest
from comparisons import a_side, matched

from magneton.compare.model import Criteria
from magneton.compare.profiles import compare
from magneton.profile.model import Profile, ScopeTime
from magneton.report.console import console_for
from magneton.report.profile import print_profile
from magneton.report.summary import summarise_profile
from magneton.report.text import print_comparison
from magneton.workload import PREFILL

SCOPES = ("model forward", "input preparation", "sampling", "")


def surveyed(*, scopes: tuple[str, ...] = SCOPES, seed: int = 0, device_kind: str = "cpu") -> Profile:
    profile = a_side(residual_j=10.0, seed=seed, device_kind=device_kind)
    return replace(
        profile,
        operators=tuple(replace(op, scope="model forward") for op in profile.operators),
        scopes=tuple(
            ScopeTime(
                phase=PREFILL,
                scope=scope,
                duration_s=0.7 if scope == "model forward" else 0.3 / (len(scopes) - 1),
                samples=700 if scope == "model forward" else 100,
            )
            for scope in scopes
        ),
    )


def compared(baseline: Profile, candidate: Profile, *, top: int = 10, width: int = 80) -> list[str]:
    stream = io.StringIO()
    comparison = compare(baseline, candidate, matched(baseline, candidate), Criteria())
    print_comparison(comparison, console_for(stream, width), top=top)
    return stream.getvalue().splitlines()


def shown(profile: Profile, *, top: int = 10) -> list[str]:
    stream = io.StringIO()
    print_profile(summarise_profile(profile), console_for(stream, 80), top=top)
    return stream.getvalue().splitlines()


def after(lines: list[str], beginning: str) -> list[str]:
    start = next(k for k, line in enumerate(lines) if line.startswith(beginning))
    return lines[start:]


@pytest.mark.parametrize("width", [80, 160])
def test_the_residual_is_followed_by_what_it_is_made_of(width: int) -> None:
    lines = after(compared(surveyed(), surveyed(seed=1), width=width), "unattributed")
    assert lines[1] == "    between operators, by 1000 and 1000 samples of the stack:"
    names = [line[:22].rstrip() for line in lines[2:6]]
    assert names == ["  model forward", "  input preparation", "  sampling", "  elsewhere"]
    assert all(" J " in line and "x [" in line for line in lines[2:6])
    assert max(map(len, lines)) <= width


def test_a_side_that_was_not_surveyed_has_no_figures() -> None:
    lines = after(compared(surveyed(), a_side(residual_j=10.0)), "unattributed")
    assert lines[1] == "    between operators, by 1000 and 0 samples of the stack:"
    assert lines[2].split()[-3:] == ["-", "-", "-"]


def test_what_was_not_found_is_not_said_to_be_nothing() -> None:
    one, other = surveyed(), surveyed(scopes=("model forward", "sampling"))
    few = tuple(replace(s, duration_s=0.398) if s.scope == SCOPES[0] else s for s in one.scopes)
    lines = after(compared(replace(one, scopes=few), other), "unattributed")
    (preparation,) = [line for line in lines if line.startswith("  input preparation")]
    (forward,) = [line for line in lines if line.startswith("  model forward")]
    assert "not seen" in preparation
    assert "  < " in forward


def test_without_a_survey_nothing_is_said() -> None:
    lines = after(compared(a_side(), a_side()), "unattributed")
    assert lines[1].startswith("─")


def test_on_a_board_there_are_times_of_the_host() -> None:
    board = surveyed(device_kind="cuda")
    lines = after(compared(board, board), "unattributed")
    assert lines[1].strip().startswith("time of the host, which is no share of it")
    assert " s " in lines[2]


def test_many_scopes_of_a_strange_file_are_cut_and_escaped() -> None:
    strange = ("model forward", *(f"\x1b[31m{k}{'x' * 100}" for k in range(200)))
    text = compared(surveyed(scopes=strange), surveyed(scopes=strange), top=3)
    assert "  198 more" in "\n".join(text)
    assert "\x1b" not in "".join(text)
    assert max(map(len, text)) <= 80
    assert "198 more scopes: --top shows them" in shown(surveyed(scopes=strange), top=3)


def test_one_profile_shows_how_a_step_divides() -> None:
    lines = after(shown(surveyed()), "What a step of prefill is spent on")
    assert lines[2].split() == [
        *("scope", "of", "its", "time", "time"),
        *("in", "operators", "between", "them", "samples"),
    ]
    assert lines[4].startswith("model forward")
    assert "70.0 %" in lines[4]
    assert lines[4].endswith("700")
    assert not [line for line in shown(a_side()) if "is spent on" in line]
