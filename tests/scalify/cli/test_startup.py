"""What the command line imports before it has to, in processes of its own."""

import json
import subprocess
import sys
from time import perf_counter

import pytest
from scalify_commands import command, scalify, scalify_process

from scalify import __version__

HEAVY = {
    "numpy",
    "torch",
    "egglog",
    "google",
    "pandas",
    "rich",
    "scalify.load",
    "scalify.prove",
    "scalify.ir",
}
COMMANDS = ("verify", "capture", "show", "explain")


def imported(code: str) -> set[str]:
    tail = "\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def run_and_leave(*args: str) -> str:
    return (
        f"import sys\nsys.argv = ['scalify', *{list(args)!r}]\n"
        "from scalify.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass"
    )


@pytest.mark.parametrize("args", [(), *((name,) for name in COMMANDS)])
def test_help_imports_nothing_heavy(args: tuple[str, ...]):
    assert not HEAVY & imported(run_and_leave(*args, "--help"))


def test_help_is_there_at_once():
    spent_s = min(_time_of_help_s() for _ in range(5))
    assert spent_s < 0.6  # 0.3 s where nothing else runs


def _time_of_help_s() -> float:
    start_s = perf_counter()
    subprocess.run(command("--help"), capture_output=True, check=True, timeout=60)
    return perf_counter() - start_s


def test_the_parent_of_a_proof_needs_neither_numpy_nor_the_prover():
    """What is imported twice costs twice."""
    modules = imported("import scalify.cli.app, scalify.worker.client, scalify.report.output")
    assert not (HEAVY - {"scalify.ir"}) & modules
    assert not {name for name in modules if name.startswith("scalify.ir.ops")}


def test_a_proof_does_without_the_libraries_that_a_command_line_can_do_without():
    modules = imported(run_and_leave("verify", "missing.scg", "missing.scg"))
    assert "scalify.worker.client" in modules
    assert not {"pydantic", "rich"} & modules


def test_the_package_imports_nothing_before_it_is_used():
    assert {name for name in imported("import scalify") if name.startswith("scalify.")} == set()


def test_the_version_is_printed():
    assert scalify("--version").stdout == f"scalify {__version__}\n"


def test_it_runs_as_a_module_too():
    done = subprocess.run(
        [sys.executable, "-m", "scalify", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"scalify {__version__}\n"


def test_every_command_is_listed_and_no_command_is_an_error_of_use():
    listed = scalify("--help").stdout
    assert all(name in listed for name in COMMANDS)
    assert scalify_process("nonsense").code == 2
