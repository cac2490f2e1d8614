import re
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
        ("::error file=x::y", "\\x3a:error file=x::y"),
        ("a ::warning::y", "a \\x3a:warning::y"),
        ("x::add-mask::y", "x\\x3a:add-mask::y"),
        ("##[group]", "\\x23#[group]"),
        ("done ##vso[task.setvariable]", "done \\x23#vso[task.setvariable]"),
        ("##teamcity[x]", "\\x23#teamcity[x]"),
        ("torch::nn::relu, C[::2], ## title", "torch::nn::relu, C[::2], ## title"),
        ("[bold]ünïcödé 模型[/bold]", "[bold]ünïcödé 模型[/bold]"),
    ],
)
def test_what_a_terminal_or_a_runner_would_obey_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


COMMANDS = st.sampled_from(["::", ":", "##", "#", "[", "error", "vso", " ", "\n", "::group::", "nn"])


@given(st.lists(COMMANDS).map("".join), st.integers(1, 20))
def test_no_line_of_a_report_is_a_runners_command_wherever_it_is_broken(text: str, width: int) -> None:
    shown = visible(text)

    lines = (shown[start : start + width].strip() for start in range(len(shown)))
    assert not any(re.match(r"::(error|group)( .*)?::|.*##[a-z]*\[", line) for line in lines)


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
