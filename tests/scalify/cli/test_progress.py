"""A bar for those who wait at a terminal."""

import io
from time import monotonic, sleep

from scalify.cli.progress import progress_bar


class Terminal(io.StringIO):
    """Text that somebody looks at."""

    def isatty(self) -> bool:
        return True


def shows(terminal: Terminal, text: str) -> bool:
    deadline_s = monotonic() + 20
    while text not in terminal.getvalue():
        if monotonic() > deadline_s:
            return False
        sleep(0.01)
    return True


def test_it_appears_after_a_while_even_if_nothing_is_told_and_goes_again():
    terminal = Terminal()
    with progress_bar("proving", stream=terminal, after_s=0.01) as tell:
        assert shows(terminal, "proving")
        assert tell is not None
        tell(3, 8)
        assert shows(terminal, "3/8")
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is erased


def test_what_was_told_before_it_appeared_is_shown():
    terminal = Terminal()
    with progress_bar("proving", stream=terminal, after_s=0.05) as tell:
        assert tell is not None
        tell(5, 9)
        assert shows(terminal, "5/9")


def test_work_that_is_soon_over_shows_nothing():
    terminal = Terminal()
    with progress_bar("proving", stream=terminal) as tell:
        assert tell is not None
        tell(1, 2)
    assert terminal.getvalue() == ""


def test_where_nobody_looks_there_is_no_bar():
    stream = io.StringIO()
    with progress_bar("proving", stream=stream, after_s=0.0) as tell:
        assert tell is None
    assert stream.getvalue() == ""
