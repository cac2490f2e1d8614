"""Our own plain PyTorch models as a system: the same weights, the least machinery around them."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Literal

import torch
from torch import nn

from magneton.models.model import read_model_config
from magneton.models.reference.cache import KeyValueCache, Room
from magneton.models.tokens import prompt_ids
from magneton.names import unknown
from magneton.systems.loading import begin, given_continuation
from magneton.systems.running import Facts, Setup
from magneton.systems.tokens import TokenTensors, greedy_continuation, token_tensors
from magneton.systems.torch_setting import (
    found_flags,
    found_versions,
    without_gradients,
)
from magneton.workload import DECODE, PREFILL, Continuation, GradMode, Phase

NAME = "torch"
MODULES = {
    "llama": "magneton.models.reference.llama",
    "gpt2": "magneton.models.reference.gpt2",
}


class PlainTorchSystem:
    """A reference model with a preallocated cache. Rewinding zeroes what the step is going to write."""

    framework: Literal["torch"] = "torch"

    def load(self, setup: Setup) -> Facts:
        folder, options = begin(NAME, setup)
        workload = setup.workload
        config: Mapping[str, Any] = read_model_config(folder)
        architecture = str(config.get("model_type"))
        if architecture not in MODULES:
            raise unknown("architecture for the torch system:", architecture, MODULES)
        room = Room(
            batch=workload.batch,
            positions=workload.prompt_tokens + workload.decode_steps,
            dtype=getattr(torch, workload.dtype),
            device=setup.device,
        )
        with torch.no_grad():
            self._model: nn.Module = import_module(MODULES[architecture]).load(
                folder, config, room, all_logits=options["logits"] == "all"
            )
        self._caches = tuple(part for part in self._model.modules() if isinstance(part, KeyValueCache))
        prompt = torch.from_numpy(prompt_ids(workload, config["vocab_size"])).to(setup.device)
        self._grad_mode: GradMode = setup.grad_mode
        self._prompt_tokens = workload.prompt_tokens
        self._phases = workload.phases
        given = given_continuation(setup, config["vocab_size"])
        self._tokens: TokenTensors = token_tensors(prompt, ())
        self.rewind(PREFILL)
        continuation = given or self._greedy(workload.decode_steps)
        self._tokens = token_tensors(prompt, continuation)
        self._fed = torch.tensor(continuation)
        return Facts(
            versions=found_versions(("safetensors",)),
            grad_mode=self._grad_mode,
            mode="eager",
            dataflow_mode="eager",
            flags={**found_flags(), "config.dtype": workload.dtype, "config.use_cache": "True"},
            continuation=continuation,
        )

    def phases(self) -> tuple[Phase, ...]:
        return self._phases

    def rewind(self, phase: Phase) -> None:
        if phase == DECODE and not self._filled:
            self.step(PREFILL)
        start = self._prompt_tokens if phase == DECODE else 0
        for cache in self._caches:
            cache.forget(start)
        self._filled = phase == DECODE

    def step(self, phase: Phase) -> Mapping[str, Any]:
        with without_gradients(self._grad_mode):
            if phase == PREFILL:
                logits = self._model(self._tokens.prompt, 0)
                self._filled = True
                return {"logits": logits}
            starts = range(self._prompt_tokens, self._prompt_tokens + len(self._tokens.decode))
            decode = zip(self._tokens.decode, starts, strict=True)
            return {"logits": tuple(self._model(ids, start) for ids, start in decode), "fed": self._fed}

    def uncompiled(self) -> AbstractContextManager[object]:
        return nullcontext()

    def roots(self) -> Mapping[str, Any]:
        return {"": self._model, "input": self._tokens.named()}

    def _greedy(self, steps: int) -> Continuation:
        logits = self.step(PREFILL)["logits"]
        with without_gradients(self._grad_mode):
            return greedy_continuation(
                logits, lambda ids, step: self._model(ids, self._prompt_tokens + step), steps
            )
