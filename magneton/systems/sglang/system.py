"""SGLang's scheduler, driven one turn of its loop at a time, in this process.

A step of prefill hands a batch of requests to the scheduler and runs one turn; a step of decode runs one turn
for each token. A turn is what SGLang's own loop does: choose a batch, run it, process what came out. Nothing
of SGLang is patched: logits are seen by a hook on the module that makes them, and where a given token is
another one than the likeliest, it is exchanged between running a batch and processing it.
"""

import os
from array import array
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
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
from magneton.systems.sglang.arguments import server_arguments, server_flags
from magneton.systems.sglang.importing import prepare_import
from magneton.systems.sglang.refusals import REFUSALS
from magneton.systems.sglang.scopes import sglang_scopes
from magneton.systems.tokens import settle
from magneton.systems.torch_setting import found_flags, found_versions, grad_mode
from magneton.worker.family import TOKEN
from magneton.workload import DECODE, PREFILL, Continuation, Phase

NAME = "sglang"
LOGITS_HOME = "sglang.srt.layers.logits_processor"
GRAPH_RUNNERS = ("prefill_cuda_graph_runner", "decode_cuda_graph_runner")
PACKAGES = ("sglang", "sgl-kernel", "transformers", "triton", "flashinfer-python")


class SglangSystem:
    """A greedy generation. Rewinding lets the requests end; before decode new ones are prefilled."""

    framework: Literal["torch"] = "torch"

    @refusals("SGLang", REFUSALS)
    def load(self, setup: Setup) -> Facts:
        _, options = begin(NAME, setup)
        os.environ["SGLANG_ENABLE_TORCH_INFERENCE_MODE"] = str(setup.grad_mode == "inference").lower()
        prepare_import(setup.device)
        self._scheduler, arguments = _scheduler(server_arguments(setup, options), setup.device)
        self._turns: Any = import_module("sglang.srt.utils").DynamicGradMode
        self._new_request = import_module("sglang.srt.managers.io_struct").TokenizedGenerateReqInput
        self._abort: Any = import_module("sglang.srt.managers.io_struct").AbortReq(abort_all=True)
        self._new_params = import_module("sglang.srt.sampling.sampling_params").SamplingParams
        self._runner: Any = self._scheduler.tp_worker.model_runner
        self._model: nn.Module = self._runner.model
        self._grad_mode = grad_mode()
        self._logits: list[Tensor] = []
        logits_module(self._model, LOGITS_HOME).register_forward_hook(self._see_logits)
        self._phases = setup.workload.phases
        self._decode_steps = setup.workload.decode_steps
        vocab_size = int(self._runner.model_config.vocab_size)
        self._prompts = [array("q", row) for row in prompt_ids(setup.workload, vocab_size).tolist()]
        self._forced: list[dict[int, int]] = [{} for _ in self._prompts]
        self._started = 0
        given = given_continuation(setup, vocab_size)
        self._continuation = settle(self._generated, given, self._forced)
        self._fed = torch.tensor(self._continuation)
        return Facts(
            versions=found_versions(PACKAGES),
            grad_mode=self._grad_mode,
            mode="graph" if _has_graphs(self._runner) else "eager",
            dataflow_mode="eager",
            flags={**found_flags(), **server_flags(arguments)},
            continuation=self._continuation,
        )

    def phases(self) -> tuple[Phase, ...]:
        return self._phases

    def rewind(self, phase: Phase) -> None:
        with self._turns():
            self._scheduler.abort_request(self._abort)
            while self._turn(0) is not None:
                pass
            self._scheduler.flush_cache(empty_cache=False)
            if phase == DECODE:
                self._prefill()

    def step(self, phase: Phase) -> Mapping[str, Any]:
        with self._turns():
            if phase == PREFILL:
                self._prefill()
                return {"logits": self._logits[0]}
            self._decode()
        return {"logits": tuple(self._logits), "fed": self._fed}

    @contextmanager
    def uncompiled(self) -> Generator[None]:
        """SGLang's runner replays graphs where it has any."""
        captured = {name: getattr(self._runner, name, None) for name in GRAPH_RUNNERS}
        try:
            for name in captured:
                setattr(self._runner, name, None)
            yield
        finally:
            for name, runner in captured.items():
                setattr(self._runner, name, runner)

    def roots(self) -> Mapping[str, Any]:
        pools = (self._runner.req_to_token_pool, self._runner.token_to_kv_pool)
        tensors = {name: tensor for pool in pools for name, tensor in named_tensors(pool).items()}
        return {
            "": self._model,
            "sampler": self._runner.sampler,
            "input": tensors,
            "scopes": sglang_scopes(self._model, self._runner.attn_backend),
        }

    def _prefill(self) -> Any:
        self._logits = []
        requests: list[Any] = []
        for prompt in self._prompts:
            self._started += 1
            requests.append(self._request(str(self._started), prompt))
        self._scheduler.process_input_requests(requests)
        return self._turn(0)

    def _decode(self) -> list[Any]:
        self._logits = []
        return [self._turn(step + 1) for step in range(self._decode_steps)]

    def _turn(self, position: int) -> Tensor | None:
        """One turn of ``Scheduler.event_loop_normal``: the tokens that follow, None if nothing ran."""
        scheduler = self._scheduler
        plan = scheduler.get_next_batch_to_run(
            running_batch=scheduler.running_batch, last_batch=scheduler.last_batch
        )
        scheduler.running_batch = plan.running_batch
        batch = plan.batch_to_run
        scheduler.last_batch = batch
        if not batch:
            return None
        result = scheduler.run_batch(batch)
        if any(self._forced):
            self._exchange(batch, result.next_token_ids, position)
        scheduler.process_batch_result(batch, result)
        return result.next_token_ids

    def _exchange(self, batch: Any, chosen: Tensor, position: int) -> None:
        """Both in what is reported of the batch and in what the next one is fed, which is kept apart."""
        with unobserved(chosen.device.type):
            for row, forced in enumerate(self._forced):
                if position in forced:
                    chosen[row] = forced[position]
            self._scheduler.future_map.stash_bonus_tokens(batch.req_pool_indices, chosen)

    def _request(self, name: str, prompt: "array[int]") -> Any:
        params = self._new_params(
            temperature=0.0, max_new_tokens=self._decode_steps + UNUSED_TOKENS, ignore_eos=True
        )
        params.normalize(None)
        return self._new_request(
            rid=name,
            input_text=None,
            input_ids=prompt,
            input_embeds=None,
            mm_inputs=None,
            token_type_ids=None,
            sampling_params=params,
            return_logprob=False,
            logprob_start_len=-1,
            top_logprobs_num=0,
            token_ids_logprob=None,
            stream=False,
        )

    def _see_logits(self, _module: nn.Module, _arguments: object, output: Any) -> None:
        self._grad_mode = grad_mode()
        self._logits.append(output.next_token_logits)

    def _generated(self) -> Continuation:
        """What the decode steps are fed, [steps][batch]."""
        self.rewind(PREFILL)
        with self._turns():
            self._prefill()
            _check_rows(self._scheduler.last_batch, len(self._prompts), self._started)
            fed: list[tuple[int, ...]] = []
            for step in range(self._decode_steps):
                fed.append(self._kept())
                self._turn(step + 1)
        return tuple(fed)

    def _kept(self) -> tuple[int, ...]:
        """What the requests of the last batch are fed next."""
        kept = self._scheduler.future_map.output_tokens_buf
        return tuple(kept[self._scheduler.last_batch.req_pool_indices].tolist())


def _scheduler(arguments: Mapping[str, Any], device: str) -> tuple[Any, Any]:
    """SGLang's scheduler with its model loaded, set up as in a process of its own; its arguments."""
    server_args: Any = import_module("sglang.srt.server_args")
    settled = server_args.ServerArgs(**arguments)
    ports = server_args.PortArgs.init_new(settled)
    # It names shared memory after this and never removes that; what carries a worker's token is removed.
    ports = replace(ports, instance_id=os.environ.get(TOKEN, ports.instance_id))
    scheduling: Any = import_module("sglang.srt.managers.scheduler")
    rank = scheduling.spawn_world_rank(settled, tp_rank=0, pp_rank=0)
    board = int(device.partition(":")[2] or 0)
    scheduling.publish(settled, role="scheduler", ranks=scheduling.SpawnRanks(world_rank=rank, gpu_id=board))
    return scheduling.Scheduler(settled, ports), settled


def _has_graphs(runner: Any) -> bool:
    """Whether anything was captured; on a CPU an eager runner stands in for each."""
    runners = [getattr(runner, name, None) for name in GRAPH_RUNNERS]
    return any(one is not None and "Eager" not in type(one).__name__ for one in runners)


def _check_rows(batch: Any, prompts: int, last: int) -> None:
    """All requests in one batch, in the order in which they came: rows of logits are told apart by that."""
    expected = [str(name) for name in range(last - prompts + 1, last + 1)]
    if [request.rid for request in batch.reqs] != expected:
        raise MagnetonError(
            f"SGLang did not prefill {prompts} prompts in one batch",
            hint="lower --batch or --prompt-tokens",
        )
