"""The report's structure at fixed widths, and that no string from a profile is ever obeyed."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparisons import ATTENTION, MLP, a_side, matched
from modelled_work import meter_of
from on_boards import BOARD, at_rest, on_a_board
from profiles import an_origin
from reruns import Laboratory
from rich.console import Console

from magneton.compare.model import Comparison, Criteria, Divergence, ValuePlace
from magneton.compare.profiles import compare
from magneton.diagnose.confirm import confirm
from magneton.meters.devices import read_model
from magneton.profile.model import Doubt, Frame, Profile
from magneton.report.console import console_for
from magneton.report.text import print_comparison

EVIL = "\x1b[31m[bold]evil[/bold]\n\u202eFORGED"


def of(baseline: Profile, candidate: Profile, *, left: tuple[str, ...] = ()) -> Comparison:
    return compare(baseline, candidate, matched(baseline, candidate, left=left), Criteria())


def printed(comparison: Comparison, width: int = 80, top: int = 10) -> str:
    stream = io.StringIO()
    print_comparison(comparison, console_for(stream, width), top=top)
    return stream.getvalue()


@pytest.fixture
def wasteful() -> Comparison:
    baseline = a_side((2.0, 0.5, 2.0), seed=1, system="transformers", options={"attn": "eager"})
    candidate = a_side((1.0, 0.5, 2.0), seed=2, system="transformers", options={"attn": "sdpa"})
    return of(baseline, replace(candidate, doubts=(Doubt(kind="busy-machine", text="others were running"),)))


@pytest.mark.parametrize("width", [80, 160])
def test_everything_that_matters_is_there(wasteful: Comparison, width: int) -> None:
    text = printed(wasteful, width)

    for needed in (
        "transformers:attn=eager",
        "transformers:attn=sdpa",
        "modelled, not measured",
        "in turns, in one session",
        "yes: greedy tokens are equal, logits agree within 0 of their rms",
        "Verdict: findings: 1 place wastes energy",
        "prefill energy",
        "1. waste: the baseline spends",
        "model.layers.0-3.self_attn, 4 times per step",
        "aten.bmm, aten._softmax",
        "model.py:11 in forward",
        "x = work_of_line_11(x)",
        "called from run.py:3",
        "misconfiguration",
        "not tested; candidates: option attn: eager / sdpa",
        "unattributed",
        "whole step",
        "others were running [busy-machine]",
        "How to read this",
    ):
        assert needed in text


def test_a_cause_that_was_shown_stands_before_what_was_tried() -> None:
    laboratory = Laboratory(("torch.first", "torch.second"), frozenset({"torch.second"}))
    tested = confirm(laboratory.comparison(), laboratory.pair(), laboratory.rerun)
    text = printed(tested, width=160)

    assert "cause      confirmed: flag torch.second: costly / lean (" in text
    assert "tried      refuted: flag torch.first: costly / lean (" in text
    assert "not tested" not in text
    nothing = confirm(
        laboratory.comparison(), laboratory.pair(), replace(laboratory, behind=frozenset()).rerun
    )
    assert "none of the candidates is shown to be it" in printed(nothing)


def test_only_what_is_certain_stands_under_findings(wasteful: Comparison) -> None:
    open_ones = tuple(replace(finding, outcome="unresolved") for finding in wasteful.findings)
    assert "\nFindings\n" in printed(wasteful)
    assert "\nUnresolved (more rounds may tell)\n" not in printed(wasteful)
    left_open = printed(replace(wasteful, findings=open_ones))
    assert "\nFindings\n" not in left_open
    assert "\nUnresolved (more rounds may tell)\n" in left_open


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_console(wasteful: Comparison, width: int) -> None:
    assert max(len(line) for line in printed(wasteful, width).splitlines()) <= width


def test_figures_are_never_cut(wasteful: Comparison) -> None:
    rows = [line for line in printed(wasteful).splitlines() if "self_attn" in line and "x [" in line]

    assert rows
    assert all(line.rstrip().endswith("]") for line in rows)


def test_a_finding_fits_one_screen(wasteful: Comparison) -> None:
    lines = printed(wasteful).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("1. "))
    end = next(i for i in range(start, len(lines)) if not lines[i].strip())

    assert end - start < 24


def test_rows_beyond_the_top_are_summed(wasteful: Comparison) -> None:
    assert "1 more rows" in printed(wasteful, top=1)
    assert "more rows" not in printed(wasteful, top=10)


def test_leftovers_name_their_side_by_their_column_and_why() -> None:
    baseline = a_side((1.0, 0.5, 2.0, 1.0), layer=(*ATTENTION, *MLP, ("mlp", "aten.clone.default", 22)))

    text = printed(of(baseline, a_side(), left=("aten.clone.default",)), width=160)

    assert "on work that only it does" in text
    assert "(its results have no counterpart)" in text
    assert "redundant" in text


def test_other_outputs_are_shown_before_any_figure() -> None:
    baseline = a_side()
    other = replace(
        baseline, outputs={**baseline.outputs, "prefill.logits": np.ones((2, 16), dtype=np.float32)}
    )
    place = ValuePlace(
        name="",
        role="activation",
        shape=(2, 4),
        dtype="float32",
        producer="aten.mm.default",
        module_path="model.layers.1.mlp",
        source=Frame(file="model.py", line=21, function="forward", code="y = mm(x)"),
    )
    comparison = of(baseline, other)
    divergence = Divergence(text="other numbers", baseline=place, candidate=replace(place, shape=(8,)))

    text = printed(replace(comparison, same_work=replace(comparison.same_work, divergence=divergence)))

    assert "not the same work" in text
    assert "prefill.logits" in text
    assert "activation float32 2x4, made by aten.mm.default in" in text
    assert "model.layers.1.mlp" in text
    assert "model.py:21 in forward" in text
    assert "other numbers" in text
    assert text.index("Where the values part") < text.index("per step")


def test_strings_of_a_profile_are_shown_and_never_obeyed() -> None:
    layer = (("self_attn" + EVIL, "aten.bmm" + EVIL, 11), ("mlp", "aten.mm.default", 21))
    hostile: dict[str, Any] = {
        "system": EVIL,
        "options": {EVIL: EVIL},
        "versions": {EVIL: EVIL},
        "model": EVIL,
        "device": EVIL,
        "driver": EVIL,
    }
    baseline = a_side((2.0, 2.0), layer=layer, file=EVIL, **hostile)
    hostile["options"] = {EVIL: "x"}
    candidate = a_side((1.0, 2.0), layer=layer, seed=2, **hostile)
    doubted = replace(candidate, doubts=(Doubt(kind=EVIL, text=EVIL),))
    comparison = of(baseline, doubted)

    for width in (80, 160):
        text = printed(comparison, width)
        assert comparison.findings
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]evil[/bold]" in text.replace("\n", "")
        assert not any(line.strip().startswith("FORGED") for line in text.splitlines())


def test_colour_is_for_terminals_only(wasteful: Comparison) -> None:
    stream = io.StringIO()
    terminal = Console(file=stream, width=80, force_terminal=True, markup=False, color_system="standard")
    print_comparison(wasteful, terminal)

    assert "\x1b[" in stream.getvalue()
    assert "\x1b[" not in printed(wasteful)


@pytest.mark.parametrize("width", [80, 160])
def test_a_host_that_spins_is_told_beside_the_boards_energy(width: int) -> None:
    quiet, spinning = (at_rest(on_a_board(host_w=host_w), 2.0) for host_w in (2.0, 9.0))
    text = printed(of(quiet, spinning), width)

    for needed in (
        "host meter",
        "prefill net ",
        "prefill host ",
        "1. waste: the host of the candidate spends",
        "look for a host that spins",
        "not tested",
    ):
        assert needed in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_hosts_of_unlike_meters_are_each_told() -> None:
    baseline, candidate = a_side(meter=BOARD), on_a_board(host_w=2.0)
    text = printed(of(baseline, candidate), 160)

    assert "baseline's host   not read" in text
    assert "candidate's host  modelled (modelled, not measured)" in text


def test_a_ratio_of_modelled_hosts_is_said_to_be_one_of_time() -> None:
    text = printed(of(on_a_board(host_w=2.0), on_a_board(host_w=9.0)), 160)

    assert "of CPU time, for the hosts are modelled" in text


def test_a_step_without_energy_says_why() -> None:
    side = a_side(meter=BOARD)
    gone = tuple(replace(b, energy_j=None, gap="clocks were held down\x1b[2J") for b in side.blocks)
    text = printed(of(side, replace(side, blocks=gone)), 160)

    assert "has no reading of a whole step on the candidate's side" in text
    assert r"7 of 7 blocks of prefill have no energy: clocks were held down\x1b[2J" in text


def test_work_without_a_host_beside_it_has_no_line_for_one(wasteful: Comparison) -> None:
    text = printed(wasteful)

    assert "prefill net" not in text
    assert "prefill host" not in text
    assert "host meter" not in text


def test_what_a_model_of_a_device_says_is_told_as_such() -> None:
    meter = meter_of(read_model("h200"))
    one, other = (replace(a_side(), origin=an_origin(meter=meter, session=session)) for session in "ab")
    text = printed(of(one, other))

    assert "modelled for NVIDIA H200 SXM; ran on a processor" in text
    assert "prefill time" not in text
    assert "recorded apart" not in text
