from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import tiny_model

from magneton.errors import MagnetonError
from magneton.models.model import read_model_config
from magneton.models.reference import gpt2, llama
from magneton.models.reference.cache import KeyValueCache, Room

LOADERS = {"llama": llama.load, "gpt2": gpt2.load}


@pytest.fixture(params=LOADERS)
def architecture(request: pytest.FixtureRequest) -> str:
    return request.param


def room(batch: int = 2, positions: int = 16) -> Room:
    return Room(batch=batch, positions=positions, dtype=torch.float32, device="cpu")


def loaded(folder: Path, *, all_logits: bool = False, **config: Any) -> Any:
    whole = {**read_model_config(folder), **config}
    return LOADERS[str(whole["model_type"])](folder, whole, room(), all_logits=all_logits)


def ids() -> torch.Tensor:
    return torch.randint(0, 1024, (2, 12), generator=torch.Generator().manual_seed(0))


def test_the_last_logits_are_the_last_of_all(architecture: str, tmp_path: Path):
    folder = tiny_model(architecture, tmp_path)
    last = loaded(folder)(ids(), 0)
    every = loaded(folder, all_logits=True)(ids(), 0)
    assert last.shape == (2, 1, 1024)
    assert every.shape == (2, 12, 1024)
    torch.testing.assert_close(last, every[:, -1:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("cuts", [(12,), (11, 1), (1, 11), (5, 4, 3), (1,) * 12])
def test_however_a_sequence_is_cut_the_logits_are_the_same(
    architecture: str, tmp_path: Path, cuts: tuple[int, ...]
):
    model = loaded(tiny_model(architecture, tmp_path), all_logits=True)
    whole = model(ids(), 0)
    parts, start = list[torch.Tensor](), 0
    for part in ids().split(cuts, dim=1):
        parts.append(model(part, start))
        start += part.shape[1]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-4, rtol=0)


def test_no_token_sees_a_later_one(architecture: str, tmp_path: Path):
    model = loaded(tiny_model(architecture, tmp_path), all_logits=True)
    changed = ids()
    changed[:, 6] = (changed[:, 6] + 1) % 1024
    before, after = model(ids(), 0), model(changed, 0)
    torch.testing.assert_close(before[:, :6], after[:, :6], atol=1e-5, rtol=0)
    assert (before[:, 6:] - after[:, 6:]).abs().amax(-1).min() > 1e-3


def test_every_parameter_matters(architecture: str, tmp_path: Path):
    """A norm or a bias that the model forgot would otherwise go unnoticed."""
    folder = tiny_model(architecture, tmp_path)
    model = loaded(folder)
    before = model(ids(), 0)
    for name, parameter in model.named_parameters():
        kept = parameter.clone()
        parameter.copy_(torch.roll(kept, 1, dims=0) * 1.5 + 0.01)
        changed = model(ids(), 0)
        parameter.copy_(kept)
        assert (changed - before).abs().max() > 1e-3, name
    torch.testing.assert_close(model(ids(), 0), before, atol=0, rtol=0)


def test_logits_do_not_degenerate(architecture: str, tmp_path: Path):
    logits = loaded(tiny_model(architecture, tmp_path), all_logits=True)(ids(), 0)
    assert 0.5 < logits.std() < 10
    assert logits.argmax(-1).unique().numel() > 12


def test_weights_of_another_shape_are_refused(tmp_path: Path):
    folder = tiny_model("llama", tmp_path)
    with pytest.raises(MagnetonError, match="are not those of a Llama: size mismatch"):
        loaded(folder, intermediate_size=256)


def test_weights_that_are_missing_are_refused(tmp_path: Path):
    folder = tiny_model("llama", tmp_path)
    with pytest.raises(MagnetonError, match="are not those of a Llama: Missing key"):
        loaded(folder, num_hidden_layers=3)


def test_the_weights_of_another_architecture_are_refused(tmp_path: Path):
    config = read_model_config(tiny_model("llama", tmp_path))
    with pytest.raises(MagnetonError, match="are not those of a Llama"):
        llama.load(tiny_model("gpt2", tmp_path), config, room(), all_logits=False)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("llama", {"hidden_act": "gelu"}),
        ("llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}),
        ("gpt2", {"activation_function": "relu"}),
        ("gpt2", {"scale_attn_weights": False}),
    ],
)
def test_what_the_plain_models_do_not_know_is_refused(tmp_path: Path, name: str, config: dict[str, Any]):
    with pytest.raises(MagnetonError, match="the torch system's"):
        loaded(tiny_model(name, tmp_path), **config)


def test_a_tied_llama_needs_no_head(tmp_path: Path):
    folder = tiny_model("llama", tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors")
    model = loaded(folder, tie_word_embeddings=True)
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()


def test_a_gpt2_as_openai_named_it(tmp_path: Path):
    """No prefix, and the causal mask among the weights."""
    folder = tiny_model("gpt2", tmp_path)
    before = loaded(folder)(ids(), 0)
    weights = load_file(folder / "model.safetensors")
    renamed = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    renamed["h.0.attn.bias"] = torch.ones(1, 1, 4, 4).tril()
    save_file(renamed, folder / "model.safetensors")
    torch.testing.assert_close(loaded(folder)(ids(), 0), before, atol=0, rtol=0)


def test_a_cache_forgets_from_a_position_on():
    cache = KeyValueCache(2, 4, room(batch=1, positions=6))
    cache(torch.ones(1, 2, 6, 4), torch.ones(1, 2, 6, 4), 0)
    cache.forget(2)
    for kept in (cache.keys, cache.values):
        assert kept[:, :, :2].min() == 1
        assert kept[:, :, 2:].abs().max() == 0
