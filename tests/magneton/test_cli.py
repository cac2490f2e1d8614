"""The command line from outside: what it prints where, and with which status it leaves."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import magneton, told
from profiles import small_profile

from magneton.profile.model import Profile
from magneton.profile.store import load, save

HEAVY = ("torch", "transformers", "pandas", "pyarrow", "scipy", "numpy", "rich", "safetensors", "pynvml")
PROCESS = {**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    chain = small_profile(operators=3)
    costly = _times(chain, key=1, factor=3.0)
    for name, profile in (
        ("lean", chain),
        ("costly", costly),
        ("other-model", replace(chain, origin=replace(chain.origin, model="gpt2-tiny"))),
        ("other-work", replace(chain, outputs={"prefill.logits": np.ones((2, 4), dtype=np.float32)})),
    ):
        save(profile, folder / f"{name}.mgn")
    (folder / "broken.mgn").write_bytes(b"PK\x03\x04 not much of an archive")
    return folder


def _times(profile: Profile, key: int, factor: float) -> Profile:
    """Operators of ``key`` spend ``factor`` times as much, and so does the step."""
    energy_j = [r.energy_j or 0.0 for r in profile.replays if r.key_id == key]
    more_j = (factor - 1) * sum(energy_j) / len(energy_j)
    return replace(
        profile,
        replays=tuple(
            replace(r, energy_j=factor * (r.energy_j or 0.0)) if r.key_id == key else r
            for r in profile.replays
        ),
        blocks=tuple(replace(b, energy_j=(b.energy_j or 0.0) + more_j) for b in profile.blocks),
    )


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom magneton.cli.app import app\n"
        "try:\n    app(['compare', '--help'], prog_name='magneton')\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=PROCESS, check=True
    )

    assert result.stderr.strip() == "[]"
    assert "BASELINE" in result.stdout


WITHOUT_FRAMEWORK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "accelerate", "tokenizers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from magneton.cli import main

main()
"""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["compare", "costly.mgn", "lean.mgn"], 0),
        (["compare", "lean.mgn", "other-work.mgn", "--format", "json"], 4),
        (["match", "costly.mgn", "lean.mgn"], 4),
        (["match", "costly.mgn", "lean.mgn", "--explain", "baseline:1"], 0),
        (["show", "lean.mgn"], 0),
        (["audit", "costly.mgn"], 0),
        (["systems"], 0),
        (["doctor"], 0),
    ],
)
def test_what_reads_profiles_works_where_no_framework_is_installed(
    saved: Path, arguments: Sequence[str], status: int
) -> None:
    command = [sys.executable, "-c", WITHOUT_FRAMEWORK, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env=PROCESS, cwd=saved, check=False)

    assert (result.returncode, result.stderr) == (status, "")
    assert result.stdout != ""


@pytest.mark.parametrize("command", ["compare", "audit", "match", "record", "show", "systems", "doctor"])
def test_every_command_explains_itself(command: str) -> None:
    result = magneton(command, "--help")

    assert result.code == 0
    assert "Usage: magneton" in result.stdout


def test_version() -> None:
    result = magneton("--version")

    assert (result.code, result.stdout.split()[0]) == (0, "magneton")


def test_causes_of_recorded_profiles_cannot_be_tried(saved: Path) -> None:
    result = magneton("compare", saved / "costly.mgn", saved / "lean.mgn", "--confirm")

    assert (result.code, result.stdout) == (2, "")
    assert "costly.mgn is a recorded profile and cannot be run again" in result.stderr


def test_a_finding_is_told_and_fails_only_if_asked(saved: Path) -> None:
    sides = saved / "costly.mgn", saved / "lean.mgn"

    plain = magneton("compare", *sides)
    failing = magneton("compare", *sides, "--fail-on", "waste")
    other = magneton("compare", *sides, "--fail-on", "trade-off,redundant")

    assert "waste: the baseline spends" in plain.stdout
    assert "apart" in plain.stdout
    assert plain.stderr == ""
    assert (plain.code, failing.code, other.code) == (0, 3, 0)


def test_a_profile_against_itself_is_no_difference(saved: Path) -> None:
    result = magneton("compare", saved / "lean.mgn", saved / "lean.mgn", "--fail-on", "any")

    assert result.code == 0
    assert "no difference" in result.stdout


def test_json_is_one_document_with_a_schema(saved: Path) -> None:
    result = magneton("compare", saved / "costly.mgn", saved / "lean.mgn", "--format", "json")
    report = json.loads(result.stdout)

    assert (report["schema"], report["version"], report["verdict"]) == ("magneton-comparison", 1, "findings")


def test_other_outputs_leave_with_4(saved: Path) -> None:
    result = magneton("compare", saved / "lean.mgn", saved / "other-work.mgn")

    assert result.code == 4
    assert "not the same work" in result.stdout


def test_incomparable_names_the_field(saved: Path) -> None:
    result = magneton("compare", saved / "lean.mgn", saved / "other-model.mgn")

    told(result, "model is 'llama-tiny' in the baseline and 'gpt2-tiny' in the candidate", code=4)


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["show", "missing.mgn"], "missing.mgn"),
        (["show", "broken.mgn"], "broken.mgn"),
        (["compare", "lean.mgn", "broken.mgn"], "broken.mgn"),
        (["compare", "transfomers", "lean.mgn"], "did you mean 'transformers'"),
        (["compare", "torch:logit=all", "torch"], "did you mean 'logits'"),
        (["compare", "lean.mgn", "lean.mgn", "--fail-on", "wast"], "did you mean 'waste'"),
        (["compare", "lean.mgn", "lean.mgn", "--threshold", "inf"], "fraction"),
        (["compare", "torch", "torch", "--model", "lama"], "did you mean 'llama'"),
        (["compare", "torch", "torch", "--phases", "prefil"], "did you mean 'prefill'"),
        (["compare", "torch", "torch", "--model", "lama", "--scale", "tiny"], "did you mean 'llama'"),
        (["compare", "torch", "torch", "--scale", "tinny"], "did you mean 'tiny'"),
        (["compare", "torch", "torch", "--scale", "tiny", "--device", "cudda:0"], "did you mean 'cuda:0'"),
        (["compare", "torch", "torch", "--scale", "tiny", "--meter", "countd"], "did you mean 'counted'"),
        (["compare", "torch", "torch", "--phases", ","], "no name in the list"),
        (["compare", "torch", "torch", "--dtype", "fp16"], "did you mean 'float16'"),
        (["compare", "lean.mgn", "lean.mgn", "--format", "jsno"], "did you mean 'json'"),
        (["compare", "torch:logits=al", "torch"], "did you mean 'all'"),
        (["compare", "torch:all", "torch"], "did you mean logits=all"),
        (["compare", "torch", "model.py:build"], "no file model.py"),
        (["record", "torch", "-o", "nowhere/x.mgn", "--scale", "tiny"], "nowhere"),
        (["record", "lean.mgn", "-o", "x.mgn"], "recorded before"),
    ],
)
def test_what_the_user_can_put_right(
    saved: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], needed: str
) -> None:
    monkeypatch.chdir(saved)

    told(magneton(*arguments), needed, code=2)


def test_no_escape_code_of_an_argument_reaches_the_terminal(saved: Path) -> None:
    result = magneton("show", saved / "\x1b[31mred\u202e.mgn")

    told(result, "\\x1b[31mred\\u202e.mgn", code=2)
    assert "\x1b" not in result.stderr


def test_the_module_runs_it_too() -> None:
    command = [sys.executable, "-m", "magneton", "show", "missing.mgn"]
    result = subprocess.run(command, capture_output=True, text=True, env=PROCESS, check=False)

    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_usage_errors_leave_with_2() -> None:
    assert magneton("compare", "one").code == 2
    assert magneton("kompare").code == 2
    assert magneton("show", "x.mgn", "--format", "xml").code == 2


def test_save_keeps_both_profiles(saved: Path, tmp_path: Path) -> None:
    result = magneton("compare", saved / "costly.mgn", saved / "lean.mgn", "--save", tmp_path / "kept")

    assert result.code == 0
    assert load(tmp_path / "kept" / "baseline.mgn").origin == load(saved / "costly.mgn").origin
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["baseline.mgn", "candidate.mgn"]


def test_a_place_that_cannot_be_written_is_found_before_anything_runs(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    result = magneton("compare", saved / "lean.mgn", saved / "lean.mgn", "--save", tmp_path / "file" / "x")

    told(result, str(tmp_path / "file"), code=2)


def test_show_tells_a_profile(saved: Path) -> None:
    text = magneton("show", saved / "lean.mgn")
    report = json.loads(magneton("show", saved / "lean.mgn", "--format", "json").stdout)

    assert text.code == 0
    assert "aten.relu" in text.stdout
    assert report["schema"] == "magneton-profile-summary"


def test_systems_and_doctor_in_both_formats() -> None:
    assert "transformers" in magneton("systems").stdout
    assert json.loads(magneton("systems", "--format", "json").stdout)["schema"] == "magneton-systems"
    assert "What can be trusted here" in magneton("doctor").stdout
    assert json.loads(magneton("doctor", "--format", "json").stdout)["schema"] == "magneton-doctor"


def test_output_in_a_narrow_encoding_is_escaped_and_not_a_crash(saved: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "magneton", "show", str(saved / "lean.mgn")],
        capture_output=True,
        env={**PROCESS, "PYTHONIOENCODING": "ascii"},
        check=False,
    )

    assert result.returncode == 0
    assert result.stdout.isascii()


def test_a_reader_that_goes_away_is_no_crash(saved: Path) -> None:
    command = f"{sys.executable} -m magneton show {saved / 'lean.mgn'} --format json | true"
    result = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        env=PROCESS,
        check=False,
    )

    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr
