"""One line each way, exact."""

import json

import pytest
from scalify_results import killed, proved
from scalify_workers import request

from scalify.report.codec import CodecError
from scalify.worker.protocol import (
    Event,
    Finished,
    OutOfMemory,
    Posed,
    Proving,
    Refused,
    read_event,
    read_request,
    write_event,
    write_request,
)


def test_a_request_arrives_as_it_was_sent():
    sent = request(candidate=("a\nb.pt", "ü.pt"))
    line = write_request(sent)
    assert line.count(b"\n") == 1
    assert read_request(line) == sent


@pytest.mark.parametrize(
    "event",
    [
        Posed(unanswered=killed()),
        Proving(done=1, total=2),
        Finished(result=proved()),
        Refused(error="InvalidGraph", message="line\nbreak", hint=""),
        OutOfMemory(),
    ],
)
def test_an_event_arrives_as_it_was_told(event: Event):
    line = write_event(event)
    assert line.count(b"\n") == 1
    assert read_event(line) == event


@pytest.mark.parametrize("content", [[], {}, {"event": "Proving"}, {"event": "exec", "body": {}}])
def test_a_line_that_is_no_event_is_an_error(content: object):
    with pytest.raises(CodecError):
        read_event(json.dumps(content).encode())
