import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import tiny_model

from magneton.errors import MagnetonError
from magneton.models.model import Model, check_fits, resolve_model
from magneton.workload import Workload

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MAGNETON_CACHE", str(folder))
    return folder


def test_a_preset_is_synthesised_once(cache: Path):
    model = resolve_model("llama", "tiny")
    assert (model.name, model.architecture, model.vocab_size) == ("llama-tiny", "llama", 1024)
    assert model.folder.parent == cache / "models"
    stamp = (model.folder / "model.safetensors").stat().st_mtime_ns
    assert resolve_model("llama", "tiny") == model
    assert (model.folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_a_local_folder_is_taken_as_it_is(tmp_path: Path):
    folder = tiny_model("gpt2", tmp_path)
    model = resolve_model(str(folder))
    assert (model.name, model.folder, model.positions) == ("gpt2-tiny", folder, 1024)
    assert model.weights_hash == resolve_model("gpt2", "tiny").weights_hash


def test_one_changed_weight_is_another_model(tmp_path: Path):
    folder = tiny_model("gpt2", tmp_path)
    before = resolve_model(str(folder))
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    after = resolve_model(str(folder))
    assert after.weights_hash != before.weights_hash
    assert after.config_hash == before.config_hash


def damaged(folder: Path, damage: str) -> None:
    config, weights = folder / "config.json", folder / "model.safetensors"
    match damage:
        case "no config":
            config.unlink()
        case "config no JSON":
            config.write_text("{")
        case "config a list":
            config.write_text("[]")
        case "config nested without end":
            config.write_text("[" * 100_000)
        case "config without vocabulary":
            config.write_text(json.dumps({"model_type": "llama"}))
        case "no weights":
            weights.unlink()
        case "weights not a file":
            weights.unlink()
            weights.mkdir()
        case "weights cut short":
            weights.write_bytes(weights.read_bytes()[:-10])
        case _:
            weights.write_bytes(b"\xff" * 100)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("no config", r"cannot read .*config\.json"),
        ("config no JSON", "not valid JSON"),
        ("config a list", "does not hold a JSON object"),
        ("config nested without end", "not valid JSON"),
        ("config without vocabulary", "no vocab_size or no model_type"),
        ("no weights", r"no \*\.safetensors in"),
        ("weights not a file", r"cannot read .*model\.safetensors: Is a directory"),
        ("weights cut short", r"model\.safetensors is damaged"),
        ("weights of noise", r"model\.safetensors is damaged"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(tmp_path: Path, damage: str, message: str):
    folder = tiny_model("llama", tmp_path)
    damaged(folder, damage)
    with pytest.raises(MagnetonError, match=message):
        resolve_model(str(folder))


@pytest.mark.parametrize(
    ("spec", "scale", "message", "hint"),
    [
        ("lama", None, "unknown model 'lama'", "did you mean 'llama'?"),
        ("lama", "tiny", "unknown model 'lama'", "did you mean 'llama'?"),
        ("llama", "tyni", "unknown scale 'tyni'", "did you mean 'tiny'?"),
        ("./nowhere", None, "'./nowhere' is not a folder", "config.json"),
        ("/no/such/folder", None, "is not a folder", "config.json"),
        (str(ROOT), None, "cannot read", "Hugging Face format"),
        (str(ROOT), "tiny", "has no scales", "gpt2, llama"),
    ],
)
def test_bad_specs_say_what_is_meant(spec: str, scale: str | None, message: str, hint: str):
    with pytest.raises(MagnetonError) as caught:
        resolve_model(spec, scale)
    assert message in str(caught.value)
    assert hint in caught.value.hint


RESOLVE = "import sys; from magneton.models.model import resolve_model; print(resolve_model(*sys.argv[1:]))"


def test_a_hub_id_without_network_says_what_to_do():
    pytest.importorskip("huggingface_hub")
    script = (
        "from magneton.models.model import resolve_model, MagnetonError\n"
        "try:\n    resolve_model('no-such-org/no-such-model')\n"
        "except MagnetonError as error:\n    print(error, '|', error.hint)\n"
    )
    offline = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=offline, capture_output=True, text=True)
    assert "cannot get model 'no-such-org/no-such-model' from the hub" in done.stdout
    assert "local folder" in done.stdout


def test_processes_that_synthesise_at_once_agree(cache: Path):
    environment = {"MAGNETON_CACHE": str(cache), "PYTHONPATH": str(ROOT), "PATH": ""}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RESOLVE, "llama", "tiny"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(3)
    ]
    printed = {process.communicate()[0] for process in running}
    assert printed == {f"{resolve_model('llama', 'tiny')}\n"}
    assert len(list((cache / "models").iterdir())) == 1


def test_synthesis_needs_no_framework(cache: Path):
    script = f"{RESOLVE}; assert not {{'torch', 'transformers', 'tokenizers'}} & set(sys.modules)"
    environment = {"MAGNETON_CACHE": str(cache), "PYTHONPATH": str(ROOT), "PATH": ""}
    subprocess.run([sys.executable, "-c", script, "gpt2", "tiny"], env=environment, check=True)


def test_sequences_longer_than_the_model_are_refused(tmp_path: Path):
    model: Model = resolve_model(str(tiny_model("gpt2", tmp_path)))
    check_fits(model, Workload(prompt_tokens=1020, decode_steps=4))
    with pytest.raises(MagnetonError, match="need 1025 positions; gpt2-tiny has 1024"):
        check_fits(model, Workload(prompt_tokens=1020, decode_steps=5))
    with pytest.raises(MagnetonError, match="2 that the system keeps free, need 1026 positions"):
        check_fits(model, Workload(prompt_tokens=1020, decode_steps=4), 2)
