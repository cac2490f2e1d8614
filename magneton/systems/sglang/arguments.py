"""From a workload and options to the arguments of SGLang's server, and its settings as flags."""

import math
from collections.abc import Mapping
from typing import Any

from magneton.systems.engines import UNUSED_TOKENS
from magneton.systems.running import Setup

SPARE_TOKENS = 64  # SGLang keeps a page for padding, and admits nothing that would fill the pool
LEAST_CHUNK_TOKENS = 2048  # of a prefill, of all that SGLang chooses by the memory at hand
LARGEST_PREFILL_TOKENS = 16384  # SGLang's own; what reaches it waits for the next batch
ON_CPU = {
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "mem_fraction_static": 0.9,  # may be taken; max_total_tokens says what is. Else guessed as on a board
}
FLAGS = (
    "attention_backend",
    "sampling_backend",
    "disable_cuda_graph",
    "disable_radix_cache",
    "disable_overlap_schedule",
    "chunked_prefill_size",
    "kv_cache_dtype",
    "page_size",
    "quantization",
    "enable_torch_compile",
)


def server_arguments(setup: Setup, options: Mapping[str, str]) -> dict[str, Any]:
    """What ``ServerArgs`` is given.

    The pool of keys and values holds what the workload needs and little more: a larger one costs nothing in
    a step, and would have to be looked at whole.
    """
    workload = setup.workload
    on_cpu = setup.device == "cpu"
    prompts_tokens = workload.batch * workload.prompt_tokens
    page = int(options["page_size"] or 1)
    pages = math.ceil((workload.prompt_tokens + workload.decode_steps + UNUSED_TOKENS) / page)
    pool_tokens = page * (workload.batch * pages + math.ceil(SPARE_TOKENS / page))
    arguments: dict[str, Any] = {
        "model_path": str(setup.model_folder),
        "device": setup.device.partition(":")[0],
        "dtype": workload.dtype,
        "max_total_tokens": pool_tokens,
        "max_running_requests": workload.batch,
        "disable_cuda_graph": on_cpu or options["disable_cuda_graph"] == "true",
        "disable_radix_cache": options["disable_radix_cache"] == "true",
        "skip_tokenizer_init": options["skip_tokenizer_init"] == "true",
        "disable_overlap_schedule": True,  # a step has to end before the next one begins
        "log_level": "error",
        **(ON_CPU if on_cpu else {}),
    }
    for name in ("attention_backend", "quantization", "kv_cache_dtype"):
        if options[name]:
            arguments[name] = options[name]
    if options["page_size"]:
        arguments["page_size"] = page
    if prompts_tokens > LEAST_CHUNK_TOKENS:
        arguments["chunked_prefill_size"] = pool_tokens  # the prefill is one step
    if prompts_tokens >= LARGEST_PREFILL_TOKENS:
        arguments["max_prefill_tokens"] = pool_tokens
    return arguments


def server_flags(arguments: Any) -> Mapping[str, str]:
    """The settings that decide what runs, as SGLang settled them."""
    return {
        f"server.{name}": str(value)
        for name in FLAGS
        if (value := getattr(arguments, name, None)) is not None
    }
