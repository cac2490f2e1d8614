"""What vLLM's engine is given, for every option and kind of device; no engine is needed for that."""

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from engine_setups import engine_setup
from hypothesis import given
from hypothesis import strategies as st

from magneton.system import complete_options, describe
from magneton.systems.engines import UNUSED_TOKENS
from magneton.systems.vllm.arguments import engine_arguments, engine_flags
from magneton.workload import Workload

sizes = st.integers(1, 5000)
workloads = st.builds(Workload, batch=sizes, prompt_tokens=sizes, decode_steps=sizes)
devices = st.sampled_from(["cpu", "cuda:0", "cuda:3"])


def arguments_of(
    workload: Workload | None = None, *, device: str = "cpu", options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return engine_arguments(engine_setup(workload, device=device), complete_options("vllm", options or {}))


def test_on_a_processor_without_options():
    assert arguments_of() == {
        "model": "/models/llama",
        "dtype": "float32",
        "max_model_len": 18,
        "max_num_seqs": 3,
        "max_num_batched_tokens": 36,
        "num_gpu_blocks_override": 5,
        "block_size": 128,
        "enforce_eager": True,
        "enable_prefix_caching": True,
        "skip_tokenizer_init": False,
        "kv_cache_memory_bytes": 1 << 30,
    }


def test_on_a_board_the_engine_compiles_and_finds_its_own_memory():
    arguments = arguments_of(device="cuda:1")
    assert not arguments["enforce_eager"]
    assert arguments["block_size"] == 16
    assert "kv_cache_memory_bytes" not in arguments


OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("enforce_eager", "true", {"enforce_eager": True}),
    ("enforce_eager", "false", {"enforce_eager": False}),
    ("enable_prefix_caching", "false", {"enable_prefix_caching": False}),
    ("block_size", "32", {"block_size": 32, "num_gpu_blocks_override": 5}),
    ("block_size", "8", {"block_size": 8, "num_gpu_blocks_override": 11}),
    ("attention_backend", "FLASH_ATTN", {"attention_config": {"backend": "FLASH_ATTN"}}),
    ("quantization", "fp8", {"quantization": "fp8"}),
    ("kv_cache_dtype", "fp8", {"kv_cache_dtype": "fp8"}),
    ("detokenize", "false", {"skip_tokenizer_init": True}),
]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize(("option", "value", "expected"), OPTIONS)
def test_an_option_reaches_the_engine(device: str, option: str, value: str, expected: dict[str, Any]):
    arguments = arguments_of(device=device, options={option: value})
    assert expected.items() <= arguments.items()
    untouched = arguments_of(device=device)
    changed = {key for key in arguments if arguments[key] != untouched.get(key)}
    assert changed <= expected.keys()


def test_every_option_of_the_description_is_tried():
    assert {option for option, _, _ in OPTIONS} == describe("vllm").options.keys()


@given(workloads, devices, st.sampled_from([{}, {"block_size": "1"}, {"block_size": "32"}]))
def test_the_engine_has_room_for_the_workload_in_single_steps(
    workload: Workload, device: str, options: dict[str, str]
):
    arguments = arguments_of(workload, device=device, options=options)
    positions = workload.prompt_tokens + workload.decode_steps + UNUSED_TOKENS
    assert arguments["max_model_len"] == positions
    assert arguments["max_num_seqs"] == workload.batch
    assert arguments["max_num_batched_tokens"] >= workload.batch * workload.prompt_tokens
    assert arguments["max_num_batched_tokens"] >= arguments["max_model_len"]  # vLLM insists
    needed = workload.batch * math.ceil(positions / arguments["block_size"])
    assert needed < arguments["num_gpu_blocks_override"] <= needed + 2


def test_a_request_that_is_never_at_its_end_takes_positions_of_the_model():
    assert describe("vllm").spare_positions == UNUSED_TOKENS


def test_flags_are_what_the_engine_settled():
    config = SimpleNamespace(
        model_config=SimpleNamespace(dtype="torch.float32", quantization=None, enforce_eager=True),
        cache_config=SimpleNamespace(block_size=128, unheard="of"),
        compilation_config=SimpleNamespace(mode=SimpleNamespace(name="NONE"), custom_ops=["all"]),
    )
    assert engine_flags(config) == {
        "model.dtype": "float32",
        "model.enforce_eager": "True",
        "cache.block_size": "128",
        "compilation.mode": "NONE",
        "compilation.custom_ops": "['all']",
    }
