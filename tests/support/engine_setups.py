"""What an engine's adapter is asked for, without an engine."""

from pathlib import Path

from magneton.systems.running import Setup
from magneton.workload import Workload


def engine_setup(workload: Workload | None = None, *, device: str = "cpu") -> Setup:
    return Setup(
        options={},
        model_folder=Path("/models/llama"),
        workload=workload or Workload(batch=3, prompt_tokens=12, decode_steps=4),
        device=device,
        threads=1,
    )
