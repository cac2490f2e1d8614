"""Hugging Face Transformers, driven one forward at a time, as ``generate()`` does."""

import copy
import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch

from magneton.errors import MagnetonError
from magneton.models.tokens import prompt_ids
from magneton.systems.loading import begin, given_continuation
from magneton.systems.running import Facts, Setup
from magneton.systems.tokens import TokenTensors, greedy_continuation, token_tensors
from magneton.systems.torch_setting import (
    found_flags,
    found_versions,
    without_gradients,
)
from magneton.workload import DECODE, PREFILL, Continuation, GradMode, Phase

NAME = "transformers"
CONFIG_FLAGS = ("_attn_implementation", "use_cache", "dtype", "quantization_config")
# Layers whose update makes new tensors: the old ones stay as they are, and a reference is a copy.
GROWING_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer")


class TransformersSystem:
    """A causal language model with a fresh ``DynamicCache`` for every prefill.

    Decoding starts each time from the cache of one prefill. That cache is not cropped back, which would
    leave views of longer tensors behind and cost other strides than the first time; its layers are
    put back instead.
    """

    framework: Literal["torch"] = "torch"

    def load(self, setup: Setup) -> Facts:
        folder, options = begin(NAME, setup)
        transformers = import_module("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        try:
            model, loading = transformers.AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, setup.workload.dtype),
                attn_implementation=options["attn_implementation"],
                local_files_only=True,
                ignore_mismatched_sizes=True,  # told below, by name
                output_loading_info=True,
            )
        except (ValueError, OSError) as error:
            raise MagnetonError(
                f"transformers cannot load {folder}: {str(error).partition(chr(10))[0]}",
                hint="is it a causal language model that the installed transformers knows?",
            ) from error
        _check_complete(loading, folder)
        self._model: Any = model.to(setup.device).eval()
        self._new_cache = lambda: transformers.DynamicCache(config=self._model.config)
        accepted = inspect.signature(self._model.forward).parameters
        self._cache_keyword = "cache" if "cache" in accepted else "past_key_values"  # renamed in 5.24
        self._keywords = (
            {"logits_to_keep": int(options["logits_to_keep"])} if "logits_to_keep" in accepted else {}
        )
        vocab_size = self._model.config.get_text_config().vocab_size
        prompt = torch.from_numpy(prompt_ids(setup.workload, vocab_size)).to(setup.device)
        self._phases = setup.workload.phases
        given = given_continuation(setup, vocab_size)
        self.rewind(PREFILL)
        self._grad_mode: GradMode = setup.grad_mode
        with without_gradients(self._grad_mode):
            logits = self._forward(prompt)
        self._after_prefill: tuple[Any, ...] = tuple(self._cache.layers)
        self._continuation = given or self._greedy(logits, setup.workload.decode_steps)
        self._tokens: TokenTensors = token_tensors(prompt, self._continuation)
        self._fed = torch.tensor(self._continuation)
        return self._facts()

    def phases(self) -> tuple[Phase, ...]:
        return self._phases

    def rewind(self, phase: Phase) -> None:
        self._cache: Any = self._new_cache()
        if phase == DECODE:
            self._cache.layers = [_copied(layer) for layer in self._after_prefill]

    def step(self, phase: Phase) -> Mapping[str, Any]:
        with without_gradients(self._grad_mode):
            if phase == PREFILL:
                return {"logits": self._forward(self._tokens.prompt)}
            logits = tuple(self._forward(ids) for ids in self._tokens.decode)
        return {"logits": logits, "fed": self._fed}

    def uncompiled(self) -> AbstractContextManager[object]:
        return nullcontext()

    def roots(self) -> Mapping[str, Any]:
        cached = {
            f"cache.{index}.{name}": tensor
            for index, layer in enumerate(self._after_prefill)
            for name in ("keys", "values")
            if (tensor := getattr(layer, name, None)) is not None
        }
        return {"": self._model, "input": {**self._tokens.named(), **cached}}

    def _greedy(self, logits: torch.Tensor, steps: int) -> Continuation:
        self.rewind(DECODE)
        with without_gradients(self._grad_mode):
            return greedy_continuation(logits, lambda ids, _step: self._forward(ids), steps)

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        keywords = {self._cache_keyword: self._cache, "use_cache": True, **self._keywords}
        return self._model(input_ids=ids, **keywords).logits

    def _facts(self) -> Facts:
        config = self._model.config
        flags = {
            f"config.{name.lstrip('_')}": str(value).removeprefix("torch.")
            for name in CONFIG_FLAGS
            if (value := getattr(config, name, None)) is not None
        }
        return Facts(
            versions=found_versions(("transformers", "safetensors", "accelerate")),
            grad_mode=self._grad_mode,
            mode="eager",
            dataflow_mode="eager",
            flags={**found_flags(), **flags},
            continuation=self._continuation,
        )


def _check_complete(loading: Mapping[str, Any], folder: Path) -> None:
    """Parameters without weights were filled at random: that is another model, and another one each time."""
    missing = sorted(loading["missing_keys"])
    misshapen = sorted(str(key[0] if isinstance(key, tuple) else key) for key in loading["mismatched_keys"])
    if missing or misshapen:
        name, what = (missing[0], "lack") if missing else (misshapen[0], "have another shape for")
        more = len(missing) + len(misshapen) - 1
        others = f" and {more} more parameters" if more else ""
        raise MagnetonError(
            f"the weights in {folder} {what} {name}{others}",
            hint="copy or download the folder again: config.json and weights must belong together",
        )


def _copied(layer: Any) -> Any:
    return copy.copy(layer) if type(layer).__name__ in GROWING_LAYERS else copy.deepcopy(layer)
