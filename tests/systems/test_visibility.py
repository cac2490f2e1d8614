"""What is seen inside the engines: operators, weights, caches, modules, and the work around the model."""

import re
from collections.abc import Iterable

import pytest
from recorded import CASES, ENGINES, Recordings

from magneton.profile.model import Operator, Profile
from magneton.workload import DECODE, PREFILL

pytestmark = pytest.mark.systems

LAYERS = range(2)
PARTS = {
    "model.layers.{}.self_attn.qkv_proj",
    "model.layers.{}.self_attn.attn",
    "model.layers.{}.self_attn.o_proj",
    "model.layers.{}.mlp.gate_up_proj",
    "model.layers.{}.mlp.act_fn",
    "model.layers.{}.mlp.down_proj",
    "model.layers.{}.input_layernorm",
    "model.layers.{}.post_attention_layernorm",
}
ATTENTION = {
    "vllm": "_C.cpu_attention_with_kv_cache.default",
    "sglang": "aten._scaled_dot_product_flash_attention_for_cpu.default",
}
PRODUCTS = {"float32": "_C.onednn_mm.default", "bfloat16": "_C.weight_packed_linear.default"}
CACHE_WRITE = {"vllm": "_C.cpu_attn_reshape_and_cache.default", "sglang": "aten.index_put_.default"}
OPAQUE = re.compile(r"unified_attention|unified_kv_cache|_with_output")  # operators that hide others


def named(profile: Profile, name: str, module: str = "", phase: str = PREFILL) -> tuple[Operator, ...]:
    return tuple(
        operator
        for operator in profile.operators
        if operator.phase == phase and operator.name == name and operator.module_path.startswith(module)
    )


def read(profile: Profile, operator: Operator, role: str) -> set[str]:
    """Names of the values of that role that it reads."""
    return {profile.values[i].name for i in operator.inputs if profile.values[i].role == role}


@pytest.mark.parametrize("system", ENGINES)
@pytest.mark.parametrize("phase", [PREFILL, DECODE])
def test_attention_is_open(recordings: Recordings, system: str, phase: str):
    profile = recordings.of(system)
    names = {operator.name for operator in profile.operators}
    assert not {name for name in names if OPAQUE.search(name)}
    rows = 3 if system == "sglang" else 1  # SGLang's plain PyTorch attention takes one request at a time
    steps = CASES["greedy"].workload.decode_steps if phase == DECODE else 1
    for layer in LAYERS:
        found = named(profile, ATTENTION[system], f"model.layers.{layer}.self_attn.attn", phase)
        assert len(found) == rows * steps


@pytest.mark.parametrize("system", ENGINES)
def test_keys_and_values_are_seen_being_kept(recordings: Recordings, system: str):
    profile = recordings.of(system)
    for layer in LAYERS:
        writes = named(profile, CACHE_WRITE[system], f"model.layers.{layer}.self_attn.attn")
        overwritten = [profile.values[i] for write in writes for i in write.mutated]
        assert len(overwritten) == 2
        (attention, *_) = named(profile, ATTENTION[system], f"model.layers.{layer}.self_attn.attn")
        assert max(write.op_id for write in writes) < attention.op_id


def test_what_vllm_keeps_is_what_its_attention_reads(recordings: Recordings):
    profile = recordings.of("vllm")
    for layer in LAYERS:
        (write,) = named(profile, CACHE_WRITE["vllm"], f"model.layers.{layer}.")
        (attention,) = named(profile, ATTENTION["vllm"], f"model.layers.{layer}.")
        kept = {profile.values[i].storage_id for i in write.mutated}
        assert kept & {profile.values[i].storage_id for i in attention.inputs}


@pytest.mark.parametrize("case", ["greedy", "gpt2", "bfloat16"])
def test_weights_that_vllm_has_packed_are_among_the_inputs(recordings: Recordings, case: str):
    profile = recordings.of("vllm", case)
    products = named(profile, PRODUCTS[profile.origin.workload.dtype])
    assert len(products) == 4 * len(LAYERS) + 1
    weights = [read(profile, product, "parameter") for product in products]
    assert all(weights)
    for product, names in zip(products, weights, strict=True):
        if product.module_path != "logits_processor":  # its weight is another module's
            assert f"{product.module_path}.weight" in names


@pytest.mark.parametrize("system", ENGINES)
@pytest.mark.parametrize("phase", [PREFILL, DECODE])
def test_operators_know_their_modules(recordings: Recordings, system: str, phase: str):
    seen = {operator.module_path for operator in recordings.of(system).operators if operator.phase == phase}
    wanted = {part.format(layer) for part in PARTS for layer in LAYERS}
    assert wanted | {"model.embed_tokens", "model.norm", "logits_processor", "sampler"} <= seen


@pytest.mark.parametrize("system", ENGINES)
@pytest.mark.parametrize("phase", [PREFILL, DECODE])
def test_work_around_the_model_is_seen(recordings: Recordings, system: str, phase: str):
    """Inputs are prepared before the model, and a token is chosen after it."""
    operators = [each for each in recordings.of(system).operators if each.phase == phase]
    inside = [number for number, each in enumerate(operators) if each.module_path.startswith("model.")]
    before, after = worked(operators[: inside[0]]), worked(operators[inside[-1] :])
    assert len(before) >= 5
    assert "input preparation" in {each.scope for each in before}
    chosen = {(each.module_path, each.scope) for each in after if "argmax" in each.name}
    assert chosen == {("sampler", "sampling")}


def test_torch_does_nothing_around_the_model(recordings: Recordings):
    """What the engines' tests find is therefore not the recorder's own work."""
    operators = recordings.of("torch").operators
    outside = [each for each in worked(operators) if not each.module_path]
    assert len(outside) <= 2 * (1 + CASES["greedy"].workload.decode_steps)


def worked(operators: Iterable[Operator]) -> list[Operator]:
    return [operator for operator in operators if operator.effect in ("compute", "sync")]
