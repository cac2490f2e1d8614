"""What SGLang's scheduler does in a turn, by the functions that do it. Written for SGLang 0.5.23.

What is gone or renamed in another release goes without a name of its own, and counts to what calls it.
"""

from collections.abc import Mapping
from typing import Any

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
)

_SCOPES: Mapping[str, str] = {
    "SglangSystem._prefill": INTAKE,
    "SglangSystem._request": INTAKE,
    "Scheduler.process_input_requests": INTAKE,
    "SglangSystem._turn": LOOP,
    "Scheduler.get_next_batch_to_run": SCHEDULING,
    "ScheduleBatch.prepare_for_extend": PREPARATION,
    "ScheduleBatch.prepare_for_decode": PREPARATION,
    "Scheduler.run_batch": LOOP,
    "resolve_forward_inputs": PREPARATION,
    "ForwardBatch.init_new": PREPARATION,
    "TpModelWorker.forward_batch_generation": LOOP,
    "ModelRunner.forward": FORWARD,
    "EagerRunner.load_batch": PREPARATION,
    "ModelRunner._prepare_eager_forward_batch": PREPARATION,
    "ModelRunner.sample": SAMPLING,
    "SglangSystem._exchange": SAMPLING,
    "Scheduler.process_batch_result": OUTPUT,
    "GenerationBatchResult.copy_to_cpu": TO_HOST,
    "Scheduler.publish_load_snapshot": STATISTICS,
    "SchedulerLoadPublisher.publish_load_stat": STATISTICS,
    "Scheduler._record_step_counters": STATISTICS,
    "SchedulerMetricsReporter.record_scheduler_active": STATISTICS,
    "SchedulerMetricsReporter.report_prefill_stats": STATISTICS,
    "SchedulerMetricsReporter.report_decode_stats": STATISTICS,
    "SchedulerMetricsReporter.log_batch_result_stats": STATISTICS,
}


def sglang_scopes(model: nn.Module, attention: Any) -> Mapping[str, str]:
    """The table for a scheduler that runs ``model`` and ``attention``, whose own classes count as well."""
    return {
        **_SCOPES,
        type(model).forward.__qualname__: FORWARD,
        type(attention).init_forward_metadata.__qualname__: PREPARATION,
    }
