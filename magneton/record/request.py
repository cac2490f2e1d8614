"""One side of a recording, as asked for: everything resolved, nothing loaded."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from magneton.interventions import Intervention, SetEnvironment, SetOption
from magneton.system import system_label
from magneton.workload import Continuation, GradMode, Workload

Filled = Literal["warm", "cold"]  # caches, by the operator itself or by other data

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """``system`` is a plugin's name or ``module:Class``; ``python`` the interpreter with its packages."""

    system: str
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = ""
    model_folder: Path | None = None
    config_hash: str = ""
    weights_hash: str = ""
    workload: Workload = field(default_factory=Workload)
    meter: str = "modelled"
    device: str = "cpu"
    threads: int = 1
    python: Path = field(default_factory=lambda: Path(sys.executable))
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    grad_mode: GradMode = "no_grad"  # of a system that runs under either
    continuation: Continuation | None = None  # what decode is to be fed, as another side was
    cache: Filled | None = None  # of operators that are read in a loop; None: warm, as a loop leaves it
    interventions: tuple[Intervention, ...] = ()  # what the worker is to carry out or to find done

    def label(self) -> str:
        """As the user would type it."""
        return system_label(self.system, self.options)

    def worker_environment(self) -> dict[str, str]:
        """Numerical libraries read their number of threads once, when they are loaded."""
        return {**dict.fromkeys(THREAD_VARIABLES, str(self.threads)), **self.environment}


def intervened(request: RecordRequest, interventions: Sequence[Intervention]) -> RecordRequest:
    """The same recording with these changes on top of those it has; of two for one name the later holds."""
    options = {each.name: each.value for each in interventions if isinstance(each, SetOption)}
    variables = {each.name: each.value for each in interventions if isinstance(each, SetEnvironment)}
    return replace(
        request,
        options={**request.options, **options},
        environment={**request.environment, **variables},
        interventions=(*request.interventions, *interventions),
    )
