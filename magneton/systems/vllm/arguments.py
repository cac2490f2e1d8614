"""From a workload and options to the arguments of vLLM's engine, and the engine's settings as flags."""

import math
from collections.abc import Mapping
from typing import Any

from magneton.profile.origin import Mode
from magneton.systems.engines import UNUSED_TOKENS
from magneton.systems.running import Setup

BLOCK_TOKENS = {"cpu": 128, "cuda": 16}  # vLLM's own choice where block_size is not given
SPARE_BLOCKS = 2  # one that vLLM keeps to itself, one to spare
ROOM_ON_CPU_BYTES = 1 << 30  # may be taken; num_gpu_blocks_override says what is
FLAGS = {
    "model_config": ("dtype", "quantization", "enforce_eager", "max_model_len"),
    "cache_config": ("block_size", "cache_dtype", "enable_prefix_caching"),
    "scheduler_config": (
        "async_scheduling",
        "enable_chunked_prefill",
        "max_num_batched_tokens",
        "max_num_seqs",
    ),
    "compilation_config": ("mode", "backend", "cudagraph_mode", "custom_ops"),
    "attention_config": ("backend",),
}


def engine_arguments(setup: Setup, options: Mapping[str, str]) -> dict[str, Any]:
    """What ``vllm.LLM`` is given.

    The cache holds what the workload needs and little more: a larger one costs nothing in a step, and would
    have to be looked at whole.
    """
    workload = setup.workload
    kind = setup.device.partition(":")[0]
    positions = workload.prompt_tokens + workload.decode_steps + UNUSED_TOKENS
    block = int(options["block_size"]) if options["block_size"] else BLOCK_TOKENS[kind]
    arguments: dict[str, Any] = {
        "model": str(setup.model_folder),
        "dtype": workload.dtype,
        "max_model_len": positions,
        "max_num_seqs": workload.batch,
        "max_num_batched_tokens": max(workload.batch * workload.prompt_tokens, positions),
        "num_gpu_blocks_override": workload.batch * math.ceil(positions / block) + SPARE_BLOCKS,
        "block_size": block,
        "enforce_eager": kind == "cpu"
        if options["enforce_eager"] == "auto"
        else _is(options, "enforce_eager"),
        "enable_prefix_caching": _is(options, "enable_prefix_caching"),
        "skip_tokenizer_init": not _is(options, "detokenize"),
    }
    if kind == "cpu":
        arguments["kv_cache_memory_bytes"] = ROOM_ON_CPU_BYTES
    for name in ("quantization", "kv_cache_dtype"):
        if options[name]:
            arguments[name] = options[name]
    if options["attention_backend"]:
        arguments["attention_config"] = {"backend": options["attention_backend"]}
    return arguments


def engine_mode(config: Any) -> Mode:
    """How the engine runs its model."""
    compilation = config.compilation_config
    if compilation.cudagraph_mode is not None and compilation.cudagraph_mode.name != "NONE":
        return "graph"
    return "eager" if compilation.mode is None or compilation.mode.name == "NONE" else "compiled"


def engine_flags(config: Any) -> Mapping[str, str]:
    """The settings that decide what runs, as the engine settled them."""
    return {
        f"{part.removesuffix('_config')}.{name}": _plain(value)
        for part, names in FLAGS.items()
        for name in names
        if (value := getattr(getattr(config, part, None), name, None)) is not None
    }


def _is(options: Mapping[str, str], name: str) -> bool:
    return options[name] == "true"


def _plain(value: Any) -> str:
    return str(getattr(value, "name", value)).removeprefix("torch.")
