"""The list of strings: each line one string, nothing that unfolds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.errors import InvalidProfile
from magneton.profile.damage import quoted
from magneton.profile.texts import MAX_TEXT_LENGTH, MAX_TEXTS, TextPool, decode_texts


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_come_back_each_once(texts: list[str]) -> None:
    pool = TextPool()
    indices = pool.add(texts)
    known = decode_texts(pool.encode())
    assert [known[i] for i in indices] == texts
    assert len(set(known)) == len(known)


def test_a_gap_takes_no_string() -> None:
    pool = TextPool()
    assert pool.add_optional(["a", None, "a", "b"]) == [0, None, 0, 1]
    assert decode_texts(pool.encode()) == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'"cut', "cut short"),
        (b'"cut\n', "no valid string in line 1"),
        (b'"ok"\n\n', "no string in line 2"),
        (b"[]\n", "no string in line 1"),
        (b"{}\n", "no string in line 1"),
        (b"1\n", "no string in line 1"),
        (b'"a", []\n', "no valid string in line 1"),
        (b'"\xff"\n', "no valid string in line 1"),
        (b'"\\ud800"\n', "no valid string in line 1"),
        (b'"\\x1b"\n', "no valid string in line 1"),
        (b'"\x1b"\n', "no valid string in line 1"),
        (b'""\n' * (MAX_TEXTS + 1), "1000001 lines"),
        (b'"' + b"a" * (MAX_TEXT_LENGTH + 1) + b'"\n', "a string of 1048577 characters in line 1"),
    ],
    ids=range(13),
)
def test_what_is_no_list_of_strings_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidProfile, match=message):
        decode_texts(data)


def test_a_string_too_long_to_load_is_not_written() -> None:
    pool = TextPool()
    pool.add(["a" * (MAX_TEXT_LENGTH + 1)])
    with pytest.raises(InvalidProfile, match="1048577 characters"):
        pool.encode()


def test_lines_are_what_any_json_reader_reads() -> None:
    pool = TextPool()
    pool.add(["模型\n\x1b[31m\u2028"])
    assert json.loads(pool.encode()) == "模型\n\x1b[31m\u2028"
    assert pool.encode().count(b"\n") == 1


@given(st.text(min_size=0))
def test_a_quoted_text_is_one_short_printable_line(text: str) -> None:
    found = quoted(text)
    assert found.isascii()
    assert found.isprintable()
    assert len(found) <= 12 * 64
