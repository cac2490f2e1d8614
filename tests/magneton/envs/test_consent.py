from dataclasses import replace

import pytest
from toy_environment import toy_place, toy_variant

from magneton.envs.consent import Conversation
from magneton.errors import MagnetonError

LARGE = toy_place(replace(toy_variant(), size_bytes=3_300_000_000, note="mind the gap"))
SMALL = toy_place()
UNKNOWN = toy_place(replace(toy_variant(), size_bytes=None))


def test_what_is_installed_how_large_and_where_is_said_beforehand() -> None:
    said: list[str] = []
    Conversation(yes=True, say=said.append).allow([LARGE])

    (offer,) = said
    for part in ("toyserver==1.0", "about 3.3 GB", str(LARGE.folder), "mind the gap", "for cpu"):
        assert part in offer


def test_it_is_said_within_eighty_columns_and_nothing_twice() -> None:
    variant = toy_variant("torch==2.13.0", "torch==2.13.0", *(f"package-{number}" for number in range(40)))
    said: list[str] = []
    Conversation(yes=True, say=said.append).allow([toy_place(replace(variant, note="to mind " * 20))])

    (offer,) = said
    assert [line for line in offer.splitlines() if len(line) > 80 and "place" not in line] == []
    assert offer.count("torch==2.13.0") == 1
    assert "and more, and what they need" in " ".join(offer.split())


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " y"])
def test_a_large_one_is_asked_for_on_a_terminal(answer: str) -> None:
    said: list[str] = []
    Conversation(interactive=True, say=said.append, answer=lambda: answer).allow([LARGE, SMALL])

    assert said[-1] == "install toy (about 3.3 GB)? [y/N]"


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yn"])
def test_anything_else_is_a_no(answer: str) -> None:
    with pytest.raises(MagnetonError, match="nothing was changed"):
        Conversation(interactive=True, answer=lambda: answer).allow([LARGE])


@pytest.mark.parametrize("environment", [LARGE, UNKNOWN])
def test_where_nobody_can_be_asked_a_large_one_is_refused(environment: object) -> None:
    with pytest.raises(MagnetonError, match="nobody can be asked") as caught:
        Conversation().allow([LARGE if environment is LARGE else UNKNOWN])

    assert "magneton systems install toy --yes" in caught.value.hint


def test_small_ones_and_none_need_no_answer() -> None:
    said: list[str] = []
    Conversation(say=said.append).allow([])
    assert said == []

    Conversation(say=said.append).allow([SMALL])
    assert len(said) == 1
