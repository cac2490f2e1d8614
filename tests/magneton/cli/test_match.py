"""``magneton match`` from outside: what it prints, with which status it leaves, what it says of bad input."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from commands import magneton, told
from graphs import Graph
from two_attentions import attention

from magneton.profile.model import Profile
from magneton.profile.store import save


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    steps, fused = attention(fused=False), attention(fused=True)
    for name, profile in (
        ("steps", steps),
        ("fused", fused),
        ("other-weights", _callable(attention(fused=True, seed=2))),
        ("steps-call", _callable(steps)),
        ("other-model", replace(fused, origin=replace(fused.origin, model="gpt2-tiny"))),
        (
            "other-meter",
            replace(fused, origin=replace(fused.origin, meter=replace(fused.origin.meter, name="x"))),
        ),
        ("two-phases", _with_workload(fused, phases=("prefill", "decode"))),
        ("other-seed", _with_workload(fused, seed=7)),
        ("one-operator", _one_operator()),
        ("nothing", Graph().profile()),
    ):
        save(profile, folder / f"{name}.mgn")
    (folder / "broken.mgn").write_bytes(b"PK\x03\x04 not much of an archive")
    _with_newer_sketches(folder / "fused.mgn", folder / "newer.mgn")
    return folder


def _callable(profile: Profile) -> Profile:
    """As a user's function would be recorded: nothing says which model it is."""
    return replace(profile, origin=replace(profile.origin, config_hash=""))


def _with_workload(profile: Profile, **changed: object) -> Profile:
    workload = replace(profile.origin.workload, **changed)
    return replace(profile, origin=replace(profile.origin, workload=workload))


def _one_operator() -> Profile:
    graph = Graph(phase="prefill")
    graph.op("aten.tanh", np.tanh, graph.input("x", np.random.default_rng(0).standard_normal((8, 8))))
    return graph.profile()


def _with_newer_sketches(source: Path, target: Path) -> None:
    with ZipFile(source) as old, ZipFile(target, "w") as new:
        for member in old.infolist():
            text = old.read(member)
            new.writestr(member, re.sub(rb'"sketch_version": ?\d+', b'"sketch_version":99', text))


@pytest.mark.parametrize("columns", [80, 160])
def test_the_account_fits_the_terminal_and_names_both_sides(saved: Path, columns: int) -> None:
    left = magneton("match", saved / "steps.mgn", saved / "fused.mgn", columns=columns)

    assert (left.code, left.stderr) == (0, "")
    assert max(map(len, left.stdout.splitlines())) <= columns
    for needed in ("layers.0-1.attention", "produce equal values", "aten._softmax", "aten.sdpa", "left over"):
        assert needed in left.stdout


def test_json_holds_the_whole_matching(saved: Path) -> None:
    left = magneton("match", saved / "steps.mgn", saved / "fused.mgn", "--format", "json")
    report = json.loads(left.stdout)

    assert (report["schema"], report["version"]) == ("magneton-matching", 1)
    placed = [op for region in report["matching"]["regions"] for op in region["baseline"]]
    placed += [leftover["op_id"] for leftover in report["matching"]["only_baseline"]]
    assert sorted(placed) == list(range(report["phases"][0]["baseline"]))


def test_one_operator_is_explained(saved: Path) -> None:
    asked = ("match", saved / "steps.mgn", saved / "fused.mgn", "--explain", "baseline:5")
    left = magneton(*asked)
    report = json.loads(magneton(*asked, "--format", "json").stdout)

    assert left.code == 0
    assert "operator  baseline:5 aten.bmm" in left.stdout
    assert (report["schema"], report["explanation"]["op_id"]) == ("magneton-match-explanation", 5)
    mentioned = {(value["side"], value["value_id"]) for value in report["mentioned_values"]}
    consumed = report["explanation"]["region"]["consumes"]
    assert {("baseline", value) for pair in consumed for value in pair["baseline"]} <= mentioned


@pytest.mark.parametrize(
    ("asked", "hits"),
    [("aten.softmax", 2), ("layers.1.attention", 13), ("candidate:aten.mm", 6), ("*.sdpa", 2)],
)
def test_several_hits_are_listed_with_their_ids_and_places(saved: Path, asked: str, hits: int) -> None:
    left = magneton("match", saved / "steps.mgn", saved / "fused.mgn", "--explain", asked, "--top", "99")

    assert left.code == 0
    assert f"stands for {hits} operators" in left.stdout
    assert len(re.findall(r"^(?:baseline|candidate):\d+ ", left.stdout, re.MULTILINE)) == hits


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--explain", "aten.softmx"], "did you mean 'aten._softmax'"),
        (["--explain", "layers.7.attention"], "did you mean 'layers.1.attention'"),
        (["--explain", "baseline:99999"], "its last one is baseline:17"),
        (["--explain", "baseline:" + "9" * 5000], "the baseline has no operator 9999"),
        (["--explain", "5"], "write baseline:5 or candidate:5"),
        (["--explain", "basline:5"], "did you mean 'baseline'"),
        (["--explain", ""], "no operator or module is called ''"),
        (["--explain", "baseline:"], "no operator or module is called ''"),
        (["--phase", "prefil"], "did you mean 'prefill'"),
        (["--format", "jsno"], "did you mean 'json'"),
    ],
)
def test_what_is_misspelled_is_told(saved: Path, arguments: Sequence[str], needed: str) -> None:
    told(magneton("match", saved / "steps.mgn", saved / "fused.mgn", *arguments), needed, code=2)


@pytest.mark.parametrize(
    ("name", "needed", "code"),
    [
        ("missing", "missing.mgn", 2),
        ("broken", "broken.mgn", 2),
        ("newer", "sketch version 99", 2),
        ("other-model", "model is 'llama-tiny' in the baseline and 'gpt2-tiny' in the candidate", 4),
        ("two-phases", "phases is", 4),
        ("other-seed", "seed is 0 in the baseline and 7 in the candidate", 4),
    ],
)
def test_profiles_that_cannot_be_matched_are_refused(saved: Path, name: str, needed: str, code: int) -> None:
    told(magneton("match", saved / "steps.mgn", saved / f"{name}.mgn"), needed, code=code)


def test_another_meter_is_no_reason_to_refuse(saved: Path) -> None:
    assert magneton("match", saved / "steps.mgn", saved / "other-meter.mgn").code == 0


def test_nothing_in_common_is_said_and_leaves_with_4(saved: Path) -> None:
    left = magneton("match", saved / "steps-call.mgn", saved / "other-weights.mgn")

    assert left.code == 4
    assert "Nothing is recognised" in left.stdout
    assert "left over" in left.stdout


def test_one_operator_against_itself_and_against_none(saved: Path) -> None:
    alone = magneton("match", saved / "one-operator.mgn", saved / "one-operator.mgn")
    lonely = magneton("match", saved / "one-operator.mgn", saved / "nothing.mgn")

    assert (alone.code, lonely.code) == (0, 4)
    assert "aten.tanh" in lonely.stdout
    explained = magneton("match", saved / "one-operator.mgn", saved / "nothing.mgn", "--explain", "aten.tanh")
    assert "left over" in explained.stdout
    told(magneton("match", saved / "nothing.mgn", saved / "nothing.mgn", "--explain", "aten"), "aten", code=2)
    told(magneton("match", saved / "nothing.mgn", saved / "nothing.mgn", "--explain", "baseline:0"), code=2)
