from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from magneton.worker.log import LAST_LINES, LINE_CHARACTERS, indented, log_tail


@given(st.text())
def test_nothing_that_a_terminal_obeys_gets_through(text: str):
    shown = indented(text)

    assert shown.replace("\n", "").isprintable()
    assert len(shown.splitlines()) <= LAST_LINES
    assert all(len(line) <= LINE_CHARACTERS + 4 for line in shown.splitlines())


def test_of_a_progress_bar_the_last_state_is_shown():
    assert indented("0%\r50%\r100%\n") == "  | 100%"


def test_the_last_lines_are_kept():
    shown = indented("\n".join(f"line {number}" for number in range(100)))

    assert shown.splitlines()[0] == "  | line 80" and shown.splitlines()[-1] == "  | line 99"


def test_of_a_deep_stack_the_innermost_frames_are_kept():
    frames = [f'  File "deep.py", line {number} in f' for number in range(100)]
    shown = indented(
        "\n".join(["before", "Thread 0x1 (most recent call first):", *frames, "Extension modules: x"])
    )

    assert shown.splitlines()[0] == "  | before"
    assert shown.splitlines()[2] == f"  | {frames[0]}"


def test_a_stack_that_was_not_the_end_does_not_hide_the_end():
    frames = [f'  File "deep.py", line {number} in f' for number in range(100)]
    shown = indented("\n".join(["Thread 0x1 (most recent call first):", *frames, "then something else"]))

    assert shown.splitlines()[-1] == "  | then something else"


def test_only_the_end_of_a_huge_log_is_read(tmp_path: Path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room
        file.seek(0, 2)
        file.write(b"\nthe end\n")

    assert log_tail(log).endswith("  | the end")


def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"bad \xff\n")

    assert log_tail(log) == "  | bad \\xff"
