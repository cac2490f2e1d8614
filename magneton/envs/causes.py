"""Why an installation failed, from what pip said."""

import re
from dataclasses import dataclass
from re import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """``what`` and ``hint`` may hold ``{0}``: what the pattern captured."""

    pattern: Pattern[str]
    what: str
    hint: str


# The first that fits: a lost connection also makes pip say that there is no such distribution.
CAUSES = (
    Cause(
        pattern=re.compile(r"No space left on device|\[Errno 28\]|Disk quota exceeded"),
        what="the disk is full",
        hint="make room, or set MAGNETON_CACHE to a folder on another disk",
    ),
    Cause(
        pattern=re.compile(r"ensurepip is not available|No module named '?(?:venv|ensurepip|pip)\b"),
        what="this Python cannot make virtual environments",
        hint="install its package for that (python3-venv on Debian), or name an interpreter with --python",
    ),
    Cause(
        pattern=re.compile(
            r"NewConnectionError|Temporary failure in name resolution|Name or service not known"
            r"|Network is unreachable|Max retries exceeded|ConnectTimeoutError|ReadTimeoutError|ProxyError"
            r"|Connection(?: was|) (?:reset|aborted|refused|broken)|IncompleteRead|SSLError"
            r"|incomplete-download"
        ),
        what="the package index cannot be reached",
        hint="check the network and pip's settings (pip config list): index, proxy, certificates",
    ),
    Cause(
        pattern=re.compile(r"\b(?:401|403) Client Error|HTTP error (?:401|403)"),
        what="the package index wants a name and a password",
        hint="pip config list shows which index; put the credentials into its address or into .netrc",
    ),
    Cause(
        pattern=re.compile(
            r"Package '([^']+)' requires a different Python"
            r"|require a different python version:[^\n]*?\b(?P<version>[\w.]+) Requires-Python"
            r"(?s:.*)No matching distribution found for [\w.-]+==(?P=version)\s"
        ),
        what="a package does not support this version of Python",
        hint="run magneton in a Python that it supports, or name an interpreter with --python",
    ),
    Cause(
        pattern=re.compile(r"No matching distribution found for ([^\s(]+\+cpu)\b"),
        what="no index that pip knows offers {0}",
        hint="CPU builds of PyTorch lie in an index of their own: name it in PIP_EXTRA_INDEX_URL"
        " (docs/environments.md)",
    ),
    Cause(
        pattern=re.compile(r"\(from versions: none\)(?s:.*)No matching distribution found for ([^\s(]+)"),
        what="no index that pip can reach offers {0} for this Python and this machine",
        hint="check the network and pip's settings (pip config list)",
    ),
    Cause(
        pattern=re.compile(r"No matching distribution found for ([^\s(]+)"),
        what="no index that pip knows offers {0} for this Python and this machine",
        hint="it may have been withdrawn: name an interpreter that has the system with --python, or an index"
        " that offers it in PIP_EXTRA_INDEX_URL",
    ),
    Cause(
        pattern=re.compile(r"ResolutionImpossible|conflicting dependencies"),
        what="packages contradict each other",
        hint="a constraint in pip's settings may forbid a pinned version (pip config list)",
    ),
    Cause(
        pattern=re.compile(r"DO NOT MATCH THE HASHES"),
        what="a download is not what its index says it is",
        hint="try again; if it stays, do not trust that index",
    ),
    Cause(
        pattern=re.compile(
            r"Failed (?:to build|building)|subprocess-exited-with-error|metadata-generation-failed"
        ),
        what="a package had to be built here, and that failed",
        hint="there is none ready-made for this Python and machine; a compiler may be missing",
    ),
)


RECOVERED = re.compile(r"^WARNING: Retrying \(.*$", re.MULTILINE)
NOTHING_FOUND = "(from versions: none)"


def cause_of(said: str) -> tuple[str, str] | None:
    """What went wrong, and what to do; None where the words fit nothing known.

    A connection that was lost and tried again counts only if an index had nothing to offer in the end.
    """
    text = said if NOTHING_FOUND in said else RECOVERED.sub("", said)
    for cause in CAUSES:
        if match := cause.pattern.search(text):
            return cause.what.format(*match.groups("")), cause.hint
    return None
