from pathlib import Path

import pytest
from journal_rows import BLOCK
from toy_recording import toy_prepare

from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance
from magneton.worker.protocol import (
    COMMANDS,
    REPLIES,
    Command,
    Done,
    Failed,
    Measured,
    Pause,
    Paused,
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
    read_reply,
    write_message,
)

SENT: tuple[Command, ...] = (
    toy_prepare(Path("/somewhere"), how="crash"),
    Trace(phase="prefill"),
    RunBlock(phase="prefill", steps=3, round=1, keep=False),
    TimelineBlock(phase="decode", steps=3, round=1),
    Survey(phase="decode", length_s=1.5),
    Replay(phase="decode", round=2, budget_s=1.5),
    Rest(moment="before", length_s=3.0),
    Pause(settle_s=0.5),
    Release(),
)
METER = MeterInfo(name="m", unit="J", provenance=Provenance.MEASURED)
ANSWERED: tuple[Reply, ...] = (
    Prepared(phases=("prefill",), meter=METER, shortest_window_s=0.0),
    Measured(reading=BLOCK),
    Paused(busy_cores=0.5, idle=False),
    Done(),
    Failed(kind="memory", message="line\nbreak", hint="", traceback="\x1b[0m"),
)


def test_every_message_is_tried_here():
    assert {type(command).__name__ for command in SENT} == COMMANDS.keys()
    assert {type(reply).__name__ for reply in ANSWERED} == REPLIES.keys()


@pytest.mark.parametrize("command", SENT, ids=lambda command: type(command).__name__)
def test_commands_survive_the_pipe(command: Command):
    line = write_message(command)

    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert read_command(line) == command
    assert command.doing


@pytest.mark.parametrize("reply", ANSWERED, ids=lambda reply: type(reply).__name__)
def test_replies_survive_the_pipe(reply: Reply):
    assert read_reply(write_message(reply)) == reply


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello\n",
        b"\xff\n",
        b"[]",
        b"[" * 100_000,
        b'{"magneton":1}',
        b'{"magneton":1,"kind":"Explode","body":{}}',
        b'{"magneton":1,"kind":["Done"],"body":{}}',
        b'{"magneton":1,"kind":"Done","body":{"more":1}}',
        b'{"magneton":1,"kind":"Paused","body":{"busy_cores":"many","idle":true}}',
        write_message(Release()),  # a command is no reply
    ],
)
def test_anything_else_is_refused(line: bytes):
    with pytest.raises(ProtocolError):
        read_reply(line)


def test_another_version_is_named():
    line = write_message(Done()).replace(b'"magneton":1', b'"magneton":2')

    with pytest.raises(ProtocolError, match="protocol 2 where 1 is spoken"):
        read_reply(line)
