"""Are magneton's joules right on this GPU? One prepared run, one JSON file; see validate.sh, which starts it.

    python -m gpu.validate [RESULT.json] [--budget-s 275] [--bench MODULE:CLASS] [--device cuda:0]

Prints a line a part to stderr and the path of the result to stdout. The file is written anew after each part:
what was measured stays if a later one fails. Exit status: 0, with parts perhaps dropped for want of time (the
result names them); 2 if something is missing; 4 if a part failed.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

OLDEST = (3, 11)
TORCH_BENCH = "gpu.torch_bench:TorchBench"
MODULES = {"numpy": "numpy", "pynvml": "nvidia-ml-py", "torch": "torch"}  # and what installs them
BUDGET_S = 275.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="validate.sh", description=__doc__, allow_abbrev=False)
    parser.add_argument("result", nargs="?", type=Path, default=default_result())
    parser.add_argument("--budget-s", type=float, default=BUDGET_S)
    parser.add_argument("--bench", default=TORCH_BENCH, metavar="MODULE:CLASS")
    parser.add_argument("--device", default="cuda:0")
    asked = parser.parse_args()
    complaint = missing(asked.bench)
    if complaint:
        sys.exit(told(complaint))
    from gpu.validation import validate

    from magneton.errors import MagnetonError

    try:
        sys.exit(validate(asked.result, asked.bench, asked.device, asked.budget_s))
    except MagnetonError as error:
        sys.exit(told(f"{error}; {error.hint}"))


def default_result() -> Path:
    return Path(os.environ.get("OUT") or ".") / "gpu-validation.json"


def missing(bench: str) -> str:
    """What this interpreter lacks, in one line; "" if nothing."""
    if sys.version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return f"{sys.executable} is Python {sys.version.split()[0]}; this needs {oldest} or later"
    needed = [name for name in MODULES if name != "torch" or bench == TORCH_BENCH]
    absent = [MODULES[name] for name in needed if find_spec(name) is None]
    if absent:
        return f"{sys.executable} lacks {', '.join(absent)}: name an interpreter that has it with --python"
    return ""


def told(complaint: str) -> int:
    print(f"error: {complaint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
