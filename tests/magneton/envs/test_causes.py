"""What pip says, shortened, and what users read of it."""

import pytest

from magneton.envs.causes import cause_of

RETRYING = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by"
    " 'NewConnectionError('<HTTPConnection>: Failed to establish a new connection: [Errno 111]')': /toy/\n"
)
IGNORED = (
    "ERROR: Ignored the following versions that require a different python version:"
    " 0.52.0 Requires-Python >=3.6,<3.9; 0.53.0 Requires-Python >=3.6,<3.10\n"
)


def nothing(name: str, versions: str, because: str = "") -> str:
    return (
        f"ERROR: Could not find a version that satisfies the requirement {name}{because}"
        f" (from versions: {versions})\n"
        f"ERROR: No matching distribution found for {name}\n"
    )


@pytest.mark.parametrize(
    ("said", "what", "hint"),
    [
        (RETRYING + nothing("toy==1", "none"), "cannot be reached", "proxy"),
        (RETRYING + nothing("toy==1", "0.8, 0.9"), "knows offers toy==1 ", "withdrawn"),
        (nothing("toy==1", "none"), "can reach offers toy==1 ", "check the network"),
        (
            IGNORED + nothing('torch==2.13.0+cpu; machine == "x"', "2.12.0, 2.13.0", " (from toy)"),
            "offers torch==2.13.0+cpu",
            "PIP_EXTRA_INDEX_URL",
        ),
        (IGNORED + nothing("toy==0.53.0", "0.1"), "does not support this version of Python", "--python"),
        (IGNORED + nothing("toy==0.60.0", "0.1"), "knows offers toy==0.60.0", "withdrawn"),
        (
            "ERROR: Package 'toy' requires a different Python: 3.11.7 not in '>=3.12'",
            "this version of P",
            "--python",
        ),
        ("ERROR: ... an OSError: [Errno 28] No space left on device\n", "disk is full", "make room"),
        (
            "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool",
            "cannot be reached",
            "proxy",
        ),
        ("ERROR: HTTP error 403 while getting URL\n", "wants a name and a password", ".netrc"),
        ("ERROR: ResolutionImpossible: for help visit", "contradict each other", "constraint"),
        ("error: subprocess-exited-with-error", "had to be built here", "compiler"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "is not what its index says", "trust"),
        ("ensurepip is not available.", "cannot make virtual environments", "python3-venv"),
        ("/usr/bin/python3: No module named venv", "cannot make virtual environments", "python3-venv"),
    ],
)
def test_each_cause_is_told_with_what_to_do(said: str, what: str, hint: str) -> None:
    cause = cause_of(said)

    assert cause is not None
    assert what in cause[0]
    assert hint in cause[1]


@pytest.mark.parametrize("said", ["", RETRYING, "Collecting toy\nKilled\n", IGNORED])
def test_words_that_explain_nothing_are_not_explained(said: str) -> None:
    assert cause_of(said) is None
