"""What parent and worker say to each other: one line of JSON each way, strictly in turn.

    parent                    worker
    Prepare ----------------> load the system, open the meter
            <---------------- Prepared
    Trace, RunBlock, ... ---> do it
            <---------------- Done | Measured | Paused | Failed
    Release ----------------> leave
            <---------------- Done

The parent owns the order: nothing runs in a worker between a reply and the next command.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from magneton.interventions import Intervention
from magneton.profile.model import BlockReading, Moment
from magneton.profile.origin import MeterInfo
from magneton.record.codec import CodecError, encode, reader
from magneton.record.request import Filled
from magneton.workload import Continuation, GradMode, Phase, Workload

PROTOCOL_VERSION = 1
MAX_MESSAGE_BYTES = 1 << 20

FailureKind = Literal["user", "crash", "memory"]


class ProtocolError(ValueError):
    """A line that is no message of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Load ``system`` and open ``meter``. Everything but where to write goes into the profile's origin."""

    system: str
    options: Mapping[str, str]
    model: str
    model_folder: Path | None
    config_hash: str
    weights_hash: str
    workload: Workload
    meter: str
    device: str
    threads: int
    session: str
    journal: Path
    started_s: float  # the recording's start on the clock that all processes share (time.monotonic)
    grad_mode: GradMode = "no_grad"
    continuation: Continuation | None = None  # what decode steps are to be fed; None: the system chooses
    cache: Filled | None = None  # of operators that are repeated; None: as repeating leaves it
    seed: int = 0  # of the moments at which windows begin
    interventions: tuple[Intervention, ...] = ()

    @property
    def doing(self) -> str:
        return f"loading {self.model or self.system}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    phase: Phase

    @property
    def doing(self) -> str:
        return f"tracing {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBlock:
    """A clean block. A warm-up is one that is not kept."""

    phase: Phase
    steps: int
    round: int
    keep: bool

    @property
    def doing(self) -> str:
        return f"running {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineBlock:
    phase: Phase
    steps: int
    round: int

    @property
    def doing(self) -> str:
        return f"profiling {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Nothing to do for a system whose adapter names no scopes."""

    phase: Phase
    length_s: float  # of its steps together

    @property
    def doing(self) -> str:
        return f"surveying {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    phase: Phase
    round: int
    budget_s: float

    @property
    def doing(self) -> str:
        return f"replaying operators of {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Read what device and host draw while nothing runs. Nothing to do for a meter that measures nothing."""

    moment: Moment
    length_s: float

    @property
    def doing(self) -> str:
        return "reading idle power"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Finish what is under way and fall idle within ``settle_s``, while the other side works."""

    settle_s: float

    @property
    def doing(self) -> str:
        return "pausing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    @property
    def doing(self) -> str:
        return "leaving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    phases: tuple[Phase, ...]
    meter: MeterInfo
    shortest_window_s: float
    continuation: Continuation | None = None  # what decode steps are fed


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    reading: BlockReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    busy_cores: float  # of the worker and the processes of its group, while they should be idle
    idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """``user``: message and hint are meant for the user. The others come with the end of a traceback."""

    kind: FailureKind
    message: str
    hint: str
    traceback: str


Command = Prepare | Trace | RunBlock | TimelineBlock | Survey | Replay | Rest | Pause | Release
Reply = Prepared | Measured | Paused | Done | Failed

COMMANDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (Prepare, Trace, RunBlock, TimelineBlock, Survey, Replay, Rest, Pause, Release)
}
REPLIES: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (Prepared, Measured, Paused, Done, Failed)
}


def write_message(message: Command | Reply) -> bytes:
    """The message as one line, its end included."""
    envelope = {"magneton": PROTOCOL_VERSION, "kind": type(message).__name__, "body": message}
    return encode(envelope).encode("ascii") + b"\n"


def read_command(line: bytes) -> Command:
    return cast(Command, _read(line, COMMANDS))


def read_reply(line: bytes) -> Reply:
    return cast(Reply, _read(line, REPLIES))


def _read(line: bytes, kinds: Mapping[str, type[Any]]) -> object:
    try:
        match json.loads(line):
            case {"magneton": version} if version != PROTOCOL_VERSION:
                raise ProtocolError(f"protocol {version!r:.20} where {PROTOCOL_VERSION} is spoken")
            case {"magneton": _, "kind": str(kind), "body": body} if kind in kinds:
                return reader(kinds[kind])(body)
            case _:
                raise ProtocolError(f"not a message: {line[:80]!r}")
    except (ValueError, RecursionError, CodecError) as error:
        raise ProtocolError(str(error)) from error
