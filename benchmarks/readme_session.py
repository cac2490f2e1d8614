"""Run the session that the README shows, and write what it printed back into the README.

    python benchmarks/readme_session.py [PART OF A HEADING]

Only the ``console`` blocks under headings that begin with "A session" are run; each line that begins with
``$`` is a command, and what follows it up to the next one is replaced by its output at 80 columns.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
_SESSION = re.compile(r"## A session[^\n]*\n.*?(?=\n## )", re.DOTALL)
_ANSWERS = (0, 3, 4)  # fine, a finding, unresolved or unknown: all of them are shown
_BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)


def main() -> None:
    text = README.read_text(encoding="utf-8")
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    sessions = [session for session in _SESSION.findall(text) if only in session.splitlines()[0]]
    if not sessions:
        sys.exit(f"the README has no session {only}".rstrip())
    for session in sessions:
        text = text.replace(session, _BLOCK.sub(lambda block: run(block.group()), session))
    README.write_text(text, encoding="utf-8")


def run(block: str) -> str:
    """The commands of ``block``, each followed by what it prints now."""
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "\n".join(f"{command}\n{output_of(command)}" for command in commands)


def output_of(command: str) -> str:
    words = shlex.split(command.removeprefix("$ "))
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", *words], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in _ANSWERS:
        sys.exit(f"{command} left with status {done.returncode}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


if __name__ == "__main__":
    main()
