"""Wrapping, and that foreign text is shown and never obeyed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.report.page import Page, Styled

EVIL = "\x1b[31mred\nFORGED \u202egnp.exe\x07::error::x"


def line(*pieces: str | Styled, width: int = 20, first: str = "", hang: int = 0) -> list[str]:
    page = Page(width=width)
    page.line(*pieces, first=first, hang=hang)
    return page.text().splitlines()


def test_lines_are_broken_at_blanks():
    assert line("one two three four five six") == ["one two three four", "five six"]


def test_a_word_that_does_not_fit_is_broken_within():
    assert line("x" * 45) == ["x" * 20, "x" * 20, "x" * 5]


def test_what_follows_is_set_in():
    assert line("one two three four", width=12, first="- ", hang=4) == ["- one two", "    three", "    four"]


def test_a_break_between_styles_is_as_good_as_any_and_no_blank_leads_a_line():
    assert line("aaaa aaaa ", Styled("bbbb", "bold"), ": cccc", width=10) == ["aaaa aaaa", "bbbb: cccc"]


def test_wide_characters_take_two_columns_and_accents_none():
    assert line("漢字漢字漢", width=8) == ["漢字漢字", "漢"]
    assert line("e\u0301" * 8, width=8) == ["e\u0301" * 8]


@given(st.text(max_size=200), st.integers(8, 40), st.integers(0, 4))
def test_everything_is_printed_and_no_line_is_too_wide(text: str, width: int, hang: int):
    lines = line(text, width=width, hang=hang)
    whole = line(text, width=100_000)
    assert "".join("".join(lines).split()) == "".join("".join(whole).split())
    assert all(len(each) <= width for each in lines if each.isascii())


@pytest.mark.parametrize("add", ["line", "entry", "heading"])
def test_foreign_text_is_escaped(add: str):
    page = Page(width=80)
    getattr(page, add)(EVIL)
    text = page.text()
    assert text.count("\n") == (2 if add == "heading" else 1)
    for obeyed in ("\x1b", "\u202e", "\x07", "::error::"):
        assert obeyed not in text


def test_a_fact_has_its_name_on_the_left():
    page = Page(width=30)
    page.fact("baseline", "one two three four five")
    page.fact("", "six")
    assert page.text() == "  baseline   one two three\n             four five\n             six\n"


def test_a_very_long_piece_is_cut():
    assert len("".join(line("x" * 5000, width=80))) == 1000
