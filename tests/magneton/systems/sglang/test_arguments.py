"""What SGLang's server is given, for every option and kind of device; no engine is needed for that."""

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
from magneton.systems.sglang.arguments import server_arguments, server_flags
from magneton.workload import Workload

sizes = st.integers(1, 5000)
workloads = st.builds(Workload, batch=sizes, prompt_tokens=sizes, decode_steps=sizes)
devices = st.sampled_from(["cpu", "cuda:0", "cuda:3"])


def arguments_of(
    workload: Workload | None = None, *, device: str = "cpu", options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return server_arguments(engine_setup(workload, device=device), complete_options("sglang", options or {}))


def test_on_a_processor_without_options():
    assert arguments_of() == {
        "model_path": "/models/llama",
        "device": "cpu",
        "dtype": "float32",
        "max_total_tokens": 3 * 18 + 64,
        "max_running_requests": 3,
        "disable_cuda_graph": True,
        "disable_radix_cache": False,
        "skip_tokenizer_init": False,
        "disable_overlap_schedule": True,
        "log_level": "error",
        "attention_backend": "torch_native",
        "sampling_backend": "pytorch",
        "grammar_backend": "none",
        "mem_fraction_static": 0.9,
    }


def test_on_a_board_backends_are_the_engines_own():
    arguments = arguments_of(device="cuda:1")
    assert arguments["device"] == "cuda"
    assert not arguments["disable_cuda_graph"]
    on_cpu = {"attention_backend", "sampling_backend", "grammar_backend", "mem_fraction_static"}
    assert not on_cpu & arguments.keys()


OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("attention_backend", "triton", {"attention_backend": "triton"}),
    ("disable_cuda_graph", "true", {"disable_cuda_graph": True}),
    ("disable_radix_cache", "true", {"disable_radix_cache": True}),
    ("skip_tokenizer_init", "true", {"skip_tokenizer_init": True}),
    ("page_size", "16", {"page_size": 16, "max_total_tokens": 3 * 32 + 64}),
    ("quantization", "fp8", {"quantization": "fp8"}),
    ("kv_cache_dtype", "fp8_e5m2", {"kv_cache_dtype": "fp8_e5m2"}),
]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize(("option", "value", "expected"), OPTIONS)
def test_an_option_reaches_the_server(device: str, option: str, value: str, expected: dict[str, Any]):
    arguments = arguments_of(device=device, options={option: value})
    assert expected.items() <= arguments.items()
    untouched = arguments_of(device=device)
    changed = {key for key in arguments if arguments[key] != untouched.get(key)}
    assert changed <= expected.keys()


def test_every_option_of_the_description_is_tried():
    assert {option for option, _, _ in OPTIONS} == describe("sglang").options.keys()


@given(
    workloads, devices, st.sampled_from([{}, {"page_size": "1"}, {"page_size": "16"}, {"page_size": "128"}])
)
def test_the_pool_holds_whole_pages_of_every_prompt(workload: Workload, device: str, options: dict[str, str]):
    arguments = arguments_of(workload, device=device, options=options)
    page = int(options.get("page_size", 1))
    positions = workload.prompt_tokens + workload.decode_steps + UNUSED_TOKENS
    needed = workload.batch * math.ceil(positions / page) * page
    assert arguments["max_total_tokens"] % page == 0
    assert needed + 64 <= arguments["max_total_tokens"] < needed + 64 + page
    assert arguments["max_running_requests"] == workload.batch


@given(workloads, devices)
def test_the_prefill_is_one_step(workload: Workload, device: str):
    """The scheduler cuts prompts into chunks of 2048 tokens or more, and ends a batch at 16384."""
    arguments = arguments_of(workload, device=device)
    tokens = workload.batch * workload.prompt_tokens
    assert tokens <= arguments.get("chunked_prefill_size", 2048)
    assert tokens < arguments.get("max_prefill_tokens", 16384)


def test_limits_are_left_alone_where_they_do_not_matter():
    arguments = arguments_of(Workload(batch=2, prompt_tokens=1024))
    assert not {"chunked_prefill_size", "max_prefill_tokens"} & arguments.keys()


def test_a_request_that_is_never_at_its_end_takes_positions_of_the_model():
    """SGLang cuts what a request may generate to two less than would fit."""
    assert describe("sglang").spare_positions == UNUSED_TOKENS + 2


def test_flags_are_what_the_server_settled():
    settled = SimpleNamespace(attention_backend="torch_native", page_size=1, quantization=None, port=30000)
    assert server_flags(settled) == {"server.attention_backend": "torch_native", "server.page_size": "1"}
