"""The command line: parse, call one function, render. Nothing heavy is imported before a command runs."""

import sys

from scalify.errors import EXIT_INTERRUPTED


def main() -> None:
    """Run the command line, and leave without a traceback even if stopped while it is being imported."""
    try:
        from scalify.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped\n")
        sys.exit(EXIT_INTERRUPTED)
