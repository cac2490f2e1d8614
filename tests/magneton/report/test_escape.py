import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import NASTY_TEXTS

from magneton.report.escape import LONGEST, visible, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\u202eabc", "\\u202eabc"),
        ("\u2066\u2069\u200f", "\\u2066\\u2069\\u200f"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\x9b31m", "\\x9b31m"),
        ("x\u2028y\x7f", "x\\u2028y\\x7f"),
        ("\udc80", "\\udc80"),
        ("[bold]ünïcödé 模型[/bold]", "[bold]ünïcödé 模型[/bold]"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text() | st.sampled_from(NASTY_TEXTS))
def test_nothing_unseen_is_left_and_escaping_twice_changes_nothing(text: str) -> None:
    shown = visible(text)

    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(shown, longest=len(shown) + 1) == shown


def test_long_strings_are_cut() -> None:
    shown = visible("x" * 10_000)

    assert len(shown) == LONGEST
    assert shown.endswith("…")


def test_lines_of_a_hint_stay_lines() -> None:
    assert visible_lines("one\n\x1b[2Jtwo\n") == "one\n\\x1b[2Jtwo\n"
