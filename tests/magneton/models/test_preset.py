import math

import pytest

from magneton.errors import MagnetonError
from magneton.models.preset import Preset, TensorRule, preset_names, read_preset, recipe_at

EVERY = [(name, scale) for name in preset_names() for scale in read_preset(name).scales]


def preset(*rules: TensorRule) -> Preset:
    return Preset(
        architecture="toy",
        description="",
        seed=0,
        default_scale="one",
        scales={"one": {"vocab": 7, "hidden": 4, "layers": 2, "experts": 3}},
        config={"size": "$hidden", "kind": "toy", "cost": 1.5},
        tensors=rules,
    )


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_every_shipped_preset_resolves_at_every_scale(name: str, scale: str):
    recipe = recipe_at(read_preset(name), scale)
    names = [tensor.name for tensor in recipe.tensors]
    assert len(set(names)) == len(names)
    assert not any("$" in str(value) for value in recipe.config.values())
    assert recipe.config["vocab_size"] == recipe.vocab_size
    assert recipe.config["model_type"] == read_preset(name).architecture


@pytest.mark.parametrize("name", preset_names())
def test_small_is_about_eighty_million_parameters(name: str):
    recipe = recipe_at(read_preset(name), "small")
    assert 70e6 < sum(math.prod(tensor.shape) for tensor in recipe.tensors) < 90e6


@pytest.mark.parametrize("name", preset_names())
def test_heads_have_a_size_that_every_system_supports(name: str):
    for sizes in read_preset(name).scales.values():
        assert sizes.get("head_dim", sizes["hidden"] // sizes["heads"]) == 64


def test_sizes_fill_config_shapes_and_repeats():
    rule = TensorRule(
        name="layer.{layers}.expert.{experts}.w", shape=("2*hidden", "vocab"), fan_in="hidden", gain=3.0
    )
    recipe = recipe_at(preset(rule), None)
    assert recipe.config == {"size": 4, "kind": "toy", "cost": 1.5}
    assert [tensor.name for tensor in recipe.tensors] == [
        f"layer.{layer}.expert.{expert}.w" for layer in range(2) for expert in range(3)
    ]
    assert {tensor.shape for tensor in recipe.tensors} == {(8, 7)}
    assert {tensor.std for tensor in recipe.tensors} == {1.5}


def test_an_unknown_scale_offers_the_nearest():
    with pytest.raises(MagnetonError) as caught:
        recipe_at(read_preset("llama"), "tny")
    assert str(caught.value) == "unknown scale 'tny'"
    assert "'tiny'" in caught.value.hint


@pytest.mark.parametrize("spread", [{}, {"std": 1.0, "fan_in": "hidden"}])
def test_a_tensor_has_one_spread(spread: dict[str, float | str]):
    with pytest.raises(ValueError, match="either std or fan_in"):
        TensorRule(name="w", shape=("hidden",), **spread)  # pyright: ignore[reportArgumentType]  # from a table


def test_the_default_scale_must_exist():
    with pytest.raises(ValueError, match="none of the scales"):
        Preset(
            architecture="toy",
            description="",
            seed=0,
            default_scale="huge",
            scales={"one": {}},
            config={},
            tensors=(),
        )
