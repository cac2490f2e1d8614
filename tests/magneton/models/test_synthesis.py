import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_models import tiny_model

from magneton.models.hashes import weights_hash
from magneton.models.preset import TensorRecipe, preset_names, read_preset, recipe_at
from magneton.models.synthesis import CHUNK, draw, recipe_hash, synthesise

# Of model.safetensors at scale tiny. They change only together with SYNTHESIS_VERSION or the preset:
# profiles recorded on different machines are comparable because these are the same everywhere.
TINY_HASHES = {
    "llama": "33ad398f999453f9b9db9852b54be4be",
    "gpt2": "9800d68c63fffd1599715326cdd64695",
}


@pytest.mark.parametrize("name", preset_names())
def test_the_same_recipe_gives_the_same_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "cache"))
    hashes = set[str]()
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        folder = tiny_model(name, tmp_path / run)
        hashes.add(weights_hash((folder / "model.safetensors",)))
    assert hashes == {TINY_HASHES[name]}


@pytest.mark.parametrize("name", preset_names())
def test_no_norm_is_all_ones_and_no_bias_zero(name: str, tmp_path: Path):
    weights = load_file(tiny_model(name, tmp_path) / "model.safetensors")
    for key, array in weights.items():
        assert array.std() > 0.001, key
        if array.ndim == 1:
            around = 1.0 if "norm" in key or (".ln_" in key and key.endswith("weight")) else 0.0
            assert abs(array.mean() - around) < 0.05, key


def test_elements_have_the_mean_and_spread_asked_for():
    drawn = draw(TensorRecipe(name="w", shape=(600, 1000), mean=1.0, std=0.2), seed=3)
    assert drawn.shape == (600, 1000)
    assert drawn.dtype == np.float32
    assert drawn.size > 2 * CHUNK
    assert drawn.mean() == pytest.approx(1.0, abs=0.002)
    assert drawn.std() == pytest.approx(0.2, rel=0.01)
    assert np.unique(drawn).size > 1e5
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1]) < 0.15


def test_tensors_differ_by_name_and_seed():
    recipe = TensorRecipe(name="w", shape=(8,), mean=0.0, std=1.0)
    other = TensorRecipe(name="v", shape=(8,), mean=0.0, std=1.0)
    assert not np.array_equal(draw(recipe, 0), draw(other, 0))
    assert not np.array_equal(draw(recipe, 0), draw(recipe, 1))


def test_the_recipes_hash_follows_scale_and_preset():
    recipes = [recipe_at(read_preset(name), scale) for name in preset_names() for scale in ("tiny", "small")]
    assert len({recipe_hash(recipe) for recipe in recipes}) == len(recipes)


def test_the_tokenizer_is_one_word_per_id(tmp_path: Path):
    folder = tiny_model("llama", tmp_path)
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert sorted(vocab.values()) == list(range(1024))


def test_transformers_reads_the_tokenizer(tmp_path: Path):
    transformers = pytest.importorskip("transformers")
    folder = tiny_model("gpt2", tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer("w5 w1023 nothing </s>").input_ids == [5, 1023, 0, 2]
    assert tokenizer.decode([7, 8]) == "w7 w8"


def test_a_disk_that_refuses_the_weights_is_an_error_of_the_system(tmp_path: Path):
    """As those of other files are: what fills the cache explains it."""
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(OSError, match=r"model\.safetensors"):
        synthesise(recipe_at(read_preset("llama"), "tiny"), tmp_path)
