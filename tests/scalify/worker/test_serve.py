"""What a worker tells, in this process: the real work on small programs."""

from pathlib import Path

from scalify_files import perceptron, written
from scalify_workers import request

from scalify.verdict import Reason
from scalify.worker.protocol import Event, Finished, Posed, Refused
from scalify.worker.serve import serve


def told(folder: Path, *, reduced: bool = True) -> list[Event]:
    one = written(folder, "one", perceptron())
    four = written(folder, "four", perceptron(ranks=4, reduced=reduced))
    events: list[Event] = []
    serve(request(baseline=(str(one),), candidate=(str(four),)), events.append)
    return events


def test_it_says_what_is_to_be_proved_before_the_answer(tmp_path: Path):
    first, *_, last = told(tmp_path)
    assert isinstance(first, Posed)
    assert isinstance(last, Finished)
    assert first.unanswered.assumptions == last.result.assumptions
    assert (first.unanswered.verdict, last.result.verdict) == ("unknown", "proved")


def test_the_answer_may_be_that_it_is_not_known(tmp_path: Path):
    last = told(tmp_path, reduced=False)[-1]
    assert isinstance(last, Finished)
    assert last.result.reason is Reason.UNPROVED


def test_what_the_user_can_put_right_is_told_by_name():
    events: list[Event] = []
    serve(request(baseline=("nowhere.scg",)), events.append)
    (refused,) = events
    assert isinstance(refused, Refused)
    assert refused.error == "InvalidGraph"
    assert "nowhere.scg" in refused.message
