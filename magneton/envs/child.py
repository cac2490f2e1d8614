"""The file that the installer runs: ``PYTHON .../magneton/envs/child.py MODULE ARGUMENT...``.

Runs ``python -m MODULE ARGUMENT...`` (``venv``, ``pip``) so that it cannot outlive the installer, whose end
of standard input closes however the installer ends. Nothing of magneton is installed in that interpreter.
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path[:] = [place for place in sys.path if not place or Path(place).resolve() != HERE]
    runpy.run_path(str(HERE.parent / "worker" / "boot.py"))["make_importable"]()
    from magneton.worker.watch import watch_parent

    watch_parent(sys.stdin.fileno(), sys.stdout.fileno())
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
