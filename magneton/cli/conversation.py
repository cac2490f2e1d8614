"""Questions to the user, on standard error: standard output is for results."""

import sys

import typer

from magneton.envs.consent import Conversation
from magneton.report.escape import visible_lines


def conversation_with_user(*, yes: bool) -> Conversation:
    """Asks only where somebody sits who can read the question and answer it."""
    interactive = sys.stdin.isatty() and sys.stderr.isatty()
    return Conversation(yes=yes, interactive=interactive, say=_say, answer=sys.stdin.readline)


def _say(text: str) -> None:
    typer.echo(visible_lines(text), err=True)
