"""The command loop inside a worker. The end of the input ends the worker and all that it started."""

import sys
import traceback
from typing import BinaryIO

from magneton.errors import MagnetonError
from magneton.systems.memory import ran_out_of_memory
from magneton.worker.loaded import Loaded, prepare
from magneton.worker.protocol import (
    Command,
    Done,
    Failed,
    Measured,
    Pause,
    Prepare,
    Prepared,
    ProtocolError,
    Release,
    Replay,
    Reply,
    Rest,
    RunBlock,
    Survey,
    TimelineBlock,
    Trace,
    read_command,
    write_message,
)
from magneton.worker.watch import end_family

TRACEBACK_LINES = 20


def serve(commands: BinaryIO, replies: BinaryIO) -> None:
    """Answer commands until ``Release``."""
    desk = Desk()
    for line in commands:
        replies.write(write_message(desk.answer(line)))
        if desk.released:
            return
    end_family()


class Desk:
    """Turns each line into a reply, whatever the system behind it does."""

    def __init__(self) -> None:
        self.released = False
        self._loaded: Loaded | None = None

    def answer(self, line: bytes) -> Reply:
        try:
            return self._carry_out(read_command(line))
        except MagnetonError as error:
            return Failed(kind="user", message=str(error), hint=error.hint, traceback="")
        except BaseException as error:  # noqa: BLE001 - the boundary: what a system raises becomes a reply
            return _failed(error)

    def _carry_out(self, command: Command) -> Reply:
        if isinstance(command, Prepare):
            self._loaded = prepare(command)
            return Prepared(
                phases=tuple(self._loaded.system.phases()),
                meter=self._loaded.windows.meter.info(),
                shortest_window_s=self._loaded.windows.shortest_window_s,
                continuation=self._loaded.continuation,
            )
        if self._loaded is None:
            raise ProtocolError(f"{type(command).__name__} before Prepare")
        return self._measure(self._loaded, command)

    def _measure(self, loaded: Loaded, command: Command) -> Reply:
        match command:
            case RunBlock():
                return Measured(reading=loaded.run_block(command))
            case TimelineBlock():
                return Measured(reading=loaded.timeline(command))
            case Pause():
                return loaded.pause(command)
            case Trace():
                loaded.trace(command)
            case Survey():
                loaded.survey(command)
            case Replay():
                loaded.replay(command)
            case Rest():
                loaded.rest(command)
            case Release() | Prepare():
                loaded.close()
                self.released = True
        return Done()


def _failed(error: BaseException) -> Failed:
    lines = "".join(traceback.format_exception(error)).splitlines()
    print(*lines, sep="\n", file=sys.__stderr__, flush=True)
    told = [line for line in lines if line.strip(" ^~")]  # those that only point into the line above go
    return Failed(
        kind="memory" if ran_out_of_memory(error) else "crash",
        message=" ".join(f"{type(error).__name__}: {error}".split()),
        hint="",
        traceback="\n".join(told[-TRACEBACK_LINES:]),
    )
