"""What vLLM's engine does in a step, by the functions that do it. Written for vLLM 0.32, its engine V1.

What is gone or renamed in another release goes without a name of its own, and counts to what calls it.
"""

from collections.abc import Mapping

from torch import nn

from magneton.record.scopes import TO_HOST
from magneton.systems.engines import (
    FORWARD,
    INTAKE,
    LOOP,
    OUTPUT,
    PREPARATION,
    SAMPLING,
    SCHEDULING,
    STATISTICS,
    TEXT,
)

_SCOPES: Mapping[str, str] = {
    "VllmSystem._prefill": INTAKE,
    "LLMEngine.add_request": INTAKE,
    "InputProcessor.process_inputs": INTAKE,
    "OutputProcessor.add_request": INTAKE,
    "EngineCore.add_request": INTAKE,
    "EngineCore.preprocess_add_request": INTAKE,
    "Scheduler.add_request": INTAKE,
    "VllmSystem._decode": LOOP,
    "LLMEngine.step": LOOP,
    "EngineCore.step": LOOP,
    "EngineCore.step_with_batch_queue": LOOP,
    "Scheduler.schedule": SCHEDULING,
    "Scheduler.get_grammar_bitmask": SCHEDULING,
    "Worker.execute_model": LOOP,
    "GPUModelRunner.execute_model": PREPARATION,
    "GPUModelRunner._model_forward": FORWARD,
    "LogitsProcessor.forward": FORWARD,
    "GPUModelRunner.sample_tokens": SAMPLING,
    "GPUModelRunner._bookkeeping_sync": OUTPUT,
    "GPUModelRunner._to_list": TO_HOST,
    "AsyncGPUModelRunnerOutput.get_output": TO_HOST,
    "Scheduler.update_from_output": OUTPUT,
    "OutputProcessor.process_outputs": OUTPUT,
    "OutputProcessor.abort_requests": OUTPUT,
    "BaseIncrementalDetokenizer.update": TEXT,
    "Scheduler.make_stats": STATISTICS,
    "OutputProcessor.update_scheduler_stats": STATISTICS,
    "StatLoggerManager.record": STATISTICS,
    "LLMEngine.do_log_stats_with_interval": STATISTICS,
}


def vllm_scopes(model: nn.Module) -> Mapping[str, str]:
    """The table for an engine that runs ``model``, whose own class counts as well."""
    own = (getattr(type(model), name, None) for name in ("forward", "compute_logits"))
    return {**_SCOPES, **{method.__qualname__: FORWARD for method in own if method is not None}}
