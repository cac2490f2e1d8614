"""Where a profile comes from: enough to say whether two of them may be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from magneton.profile.device import DeviceModel
from magneton.quantity import Provenance
from magneton.workload import Workload

Unit = Literal["J", "FLOP", "B", "operators"]
Mode = Literal["eager", "compiled", "graph"]
Cache = Literal["as met", "warm", "cold"]  # as its predecessors left them; filled by itself; by other data


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterInfo:
    """What measured, and how far its scale is off at worst.

    ``scale_low`` and ``scale_high`` bound the true reading over the stored one (a core power of 4-6 W
    around 5 W is 0.8, 1.2). The error is common to everything one meter reads on one device: it
    widens joules, and cancels in a ratio.

    With a ``device`` nothing was read: joules follow from what the operators do, when the profile is read.
    """

    name: str  # "modelled", "modelled:h200", "counted:bytes", "nvml", "rapl", "zeus"
    unit: Unit
    provenance: Provenance
    scale_low: float = 1.0
    scale_high: float = 1.0
    source: str = ""  # a sentence: what the figure is made of
    window_error: float = (
        0.0  # relative error of a window, one deviation, that more rounds do not average out
    )
    device: DeviceModel | None = None

    def __post_init__(self) -> None:
        if self.device is not None and (self.unit, self.provenance) != ("J", Provenance.MODELLED):
            raise ValueError("the model of a device gives joules, and they are modelled")

    @property
    def follows_from_counts(self) -> bool:
        """Whether every figure follows from what the operators of one trace do; there is nothing to read."""
        return self.unit != "J" or self.device is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Provenance of one recording, as found where it was made; never filled in by a reader."""

    magneton_version: str
    system: str  # "transformers"
    options: Mapping[str, str]  # as the user gave them
    versions: Mapping[str, str]  # {"python": "3.11.7", "torch": "2.13.0+cpu", ...}
    model: str  # "llama-small", a folder's name, or the callable
    config_hash: str  # of the model's configuration; "" for a user's callable
    weights_hash: str  # of its weights; "" for a user's callable
    workload: Workload
    device: str  # "Intel(R) Xeon(R) Processor", "NVIDIA H200"
    device_kind: Literal["cpu", "cuda"]
    driver: str  # "" where there is none
    meter: MeterInfo
    threads: int
    grad_mode: Literal["inference", "no_grad", "grad"]
    mode: Mode  # of clean and timeline
    dataflow_mode: Mode  # of the dataflow pass, which may have to run uncompiled
    flags: Mapping[str, str]  # as found: {"torch.backends.cuda.matmul.allow_tf32": "False"}
    recorded_at: str  # ISO 8601, UTC
    session: str  # equal on both sides when their blocks were measured alternately; "" otherwise
    host_meter: MeterInfo | None = None  # of what the host spends beside the device; None: not measured
    replay_cache: Cache = "as met"  # in which state a replayed operator finds the caches
