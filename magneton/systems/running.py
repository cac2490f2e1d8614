"""What a system's adapter promises. It lives in the system's own interpreter (see ``magneton.worker``)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from magneton.profile.origin import Mode
from magneton.workload import Continuation, GradMode, Phase, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All an adapter needs to load: where the model lies, what will be run, where and how."""

    options: Mapping[str, str]  # validated against the system's description
    model_folder: Path | None  # Hugging Face format; None for a user's callable
    workload: Workload
    device: str  # "cpu", "cuda:0"
    threads: int
    grad_mode: GradMode = "no_grad"  # for a system that runs under either; a user's callable has its own
    continuation: Continuation | None = None  # what decode is to be fed; None: the likeliest tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What only the loaded system knows; it goes into the profile's ``Origin``."""

    versions: Mapping[str, str]
    grad_mode: GradMode
    mode: Mode
    dataflow_mode: Mode
    flags: Mapping[str, str]
    continuation: Continuation | None = None  # what decode is fed; None where nothing is decoded


class RunningSystem(Protocol):
    """A loaded system whose steps can be repeated.

    ``rewind(phase)`` then ``step(phase)`` does the same work every time. Rewinding is never traced and
    belongs to no step; it is best cheap, since a meter with long windows has to read it apart. ``step``
    returns the declared outputs: small tensors (last logits, tokens, images) by name; it runs under the
    system's own grad mode.
    """

    framework: Literal["torch"]

    def load(self, setup: Setup) -> Facts: ...

    def phases(self) -> tuple[Phase, ...]: ...

    def rewind(self, phase: Phase) -> None: ...

    def step(self, phase: Phase) -> Mapping[str, Any]: ...

    def uncompiled(self) -> AbstractContextManager[object]:
        """Within, steps run operator by operator: without the compiled code and the captured graphs of the
        system's own, which hide operators. What goes through ``torch.compile`` plainly is seen to already."""
        ...

    def roots(self) -> Mapping[str, Any]:
        """Named things whose parameters and submodules give values and operators their names:
        {"": model} for one torch module. Also allowed: {"input": {...}}, a mapping of named tensors, and
        {"hidden": {...}}, weights by the path of the module that has packed them out of sight, and
        {"scopes": {...}}, what the system does in a function ("input preparation"), by the function's
        qualified name: the innermost one that is running decides."""
        ...
