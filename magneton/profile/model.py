"""What a profile holds, in memory. Torch-free: a profile is read where no framework is installed.

A recording writes rows of these types (see ``magneton/record/journal.py``); ``store`` packs them into
one ``.mgn`` file; matching and comparison read them. Ids are row numbers: operator ``k`` is
``profile.operators[k]``, in the order of execution; the same holds for values, stacks and keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NewType

import numpy as np

from magneton.profile.origin import Origin
from magneton.profile.sketches import Sketches
from magneton.workload import Phase

OpId = NewType("OpId", int)
ValueId = NewType("ValueId", int)
StackId = NewType("StackId", int)
KeyId = NewType("KeyId", int)

Role = Literal["input", "parameter", "buffer", "constant", "activation"]
Effect = Literal["compute", "view", "alloc", "sync", "random"]
Pass = Literal["clean", "timeline"]
Moment = Literal["before", "after"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One Python frame. ``code`` is the line's text, so that a report needs no source tree."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Frames that led to an operator, outermost first, without the framework's own dispatch."""

    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor at one moment: one version of one byte range of one storage.

    An argument that an operator overwrites appears as a new value, an output of that operator.
    """

    value_id: ValueId
    role: Role
    name: str  # of a parameter, buffer or input, as the model calls it; else ""
    shape: tuple[int, ...]
    dtype: str  # "float32", "int64", ...
    producer: OpId | None  # None for everything that existed before the step
    storage_id: int
    version: int  # how many writes had touched the value's bytes
    drift: float | None = None  # distance from itself when numbers are rounded otherwise; None: not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One execution of one operator, as the framework dispatched it.

    ``effect``: "view" shares its input's memory and moves nothing; "alloc" makes memory whose content
    is not a value; "sync" brings data to the host (``.item()``, ``nonzero``); "random" draws numbers.
    ``flops`` and ``bytes_moved`` are counted from shapes (docs/measuring.md), 0 for views.
    """

    op_id: OpId
    phase: Phase
    name: str  # e.g. "aten.addmm.default"; for people, never for matching
    inputs: tuple[ValueId, ...]  # every tensor read, positional, then keyword, lists flattened
    outputs: tuple[ValueId, ...]  # returned and overwritten
    mutated: tuple[ValueId, ...]  # those of ``outputs`` that overwrote an argument
    attributes: str  # the arguments that are no tensors, as JSON
    module_path: str  # "model.layers.0.self_attn"; outside any module the scope, which may be ""
    stack_id: StackId
    effect: Effect
    flops: int
    bytes_moved: int
    key_id: KeyId  # operators of one key cost the same
    duration_s: float | None  # timeline pass, median over blocks; 0.0: launched nothing; None: not seen
    scope: str = ""  # what the system was doing ("input preparation"); "" where its adapter does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayKey:
    """A class of operator executions that cost the same. ``skipped`` says why it was not replayed."""

    key_id: KeyId
    skipped: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One span of the timeline pass, on the host or a device; ``op_id`` is None where no operator fits."""

    phase: Phase
    op_id: OpId | None
    name: str
    device: str  # "cpu", "cuda:0"
    start_s: float  # from the start of the timeline block
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSample:
    """Instantaneous power during a clean block, where a sensor offers it."""

    phase: Phase
    round: int
    time_s: float  # monotonic, from the start of the recording
    power_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReading:
    """One block of ``steps`` equal steps of one phase under the meter. Figures are for the whole block.

    Blocks of equal ``round`` on both sides of one session form a pair. ``energy_j`` is None where
    the meter gave no reading or the block was rejected, and ``gap`` says why; it is never 0.0 for "don't
    know". ``host_energy_j`` is what the host spent beside a device, by ``Origin.host_meter``.
    """

    pass_: Pass
    phase: Phase
    round: int
    start_s: float  # monotonic, from the start of the recording
    steps: int
    duration_s: float
    energy_j: float | None
    host_energy_j: float | None = None
    gap: str = ""
    agreement: float | None = None  # energy by the device's power sensor over that by its counter


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReading:
    """What executing one operator cost in one round. Figures are *per execution*, less that of a mere call;
    0.0 is an operator that costs no more than calling it. ``gap`` says why there is no energy.

    ``busy_share`` is the part of ``duration_s`` in which the device was at work on it: far below 1 the
    figure is that of launching the operator. None: not known, or the device is the host.
    """

    key_id: KeyId
    round: int
    executions: int
    duration_s: float
    energy_j: float | None
    gap: str = ""
    busy_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the device was like right before or after a clean block. None: its sensor does not tell."""

    phase: Phase
    round: int
    moment: Moment
    time_s: float  # monotonic, from the start of the recording
    temperature_c: float | None
    clock_hz: float | None
    throttle: str  # reasons why clocks are held down, joined by ", "; "" for none
    foreign: int | None  # processes of others at work on the device


@dataclass(frozen=True, slots=True, kw_only=True)
class IdlePower:
    """What device and host draw with the system loaded, ready and at rest. None: not measured."""

    moment: Moment  # before the first block, after the last replay
    time_s: float  # monotonic, from the start of the recording
    duration_s: float
    power_w: float | None
    host_power_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTime:
    """How long one step of a phase stays in a scope, its operators included, as samples of the stack tell.

    The rows of a phase add up to the step; the scope "" is what lies outside all that have a name.
    ``samples`` counts looks at the stack; one within a long operator stands for a longer time than others.
    """

    phase: Phase
    scope: str
    duration_s: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A reason to trust the data less. ``kind`` is stable (kebab-case); ``text`` is for people."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything one recording found out. Immutable; ids are row numbers (checked by ``checks.check``)."""

    origin: Origin
    operators: tuple[Operator, ...]
    values: tuple[Value, ...]
    sketches: Sketches  # row k belongs to value k
    stacks: tuple[Stack, ...]
    keys: tuple[ReplayKey, ...]
    kernels: tuple[Kernel, ...] = ()
    samples: tuple[PowerSample, ...] = ()
    blocks: tuple[BlockReading, ...] = ()
    replays: tuple[ReplayReading, ...] = ()
    scopes: tuple[ScopeTime, ...] = ()
    conditions: tuple[Conditions, ...] = ()
    idle: tuple[IdlePower, ...] = ()
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])  # "prefill.logits"
    doubts: tuple[Doubt, ...] = ()
