"""Functions called in a process that has the simulated NVML: ``in_simulation(function, **arguments)``.

The process needs the library in its environment when it starts, so tests and benchmarks call into one.
Arguments and results travel as JSON. Run as a module this is the other end: a request a line.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getsourcefile
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from traceback import format_exc
from types import TracebackType
from typing import Any

from simulated_faults import Fault
from simulated_library import build_library, environment
from simulated_shapes import Board

Target = str | Callable[..., Any]  # "module:function", or a function at the top of its file


class ScenarioFailed(AssertionError):
    """The function raised; the message is its traceback and what the process wrote."""


class Host:
    """A process with the simulated NVML that calls functions, one after the other."""

    def __init__(
        self, environment_variables: dict[str, str] | None = None, *, longest_call_s: float = 600.0
    ) -> None:
        self._longest_s = longest_call_s
        variables = environment(build_library()) if environment_variables is None else environment_variables
        self._stderr = TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simulated_scenarios"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=variables,
        )

    def __enter__(self) -> "Host":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, target: Target, /, **arguments: Any) -> Any:
        """The function's result. What it raises is a ``ScenarioFailed`` here."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = json.dumps({"target": _spelled(target), "arguments": arguments})
        watchdog = Timer(self._longest_s, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watchdog.cancel()
        if not answer:
            raise ScenarioFailed(f"the process ended with {self._process.wait()}\n{self._written()}")
        reply = json.loads(answer)
        if "problem" in reply:
            raise ScenarioFailed(f"{reply['problem']}\n{self._written()}")
        return reply["result"]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._stderr.close()

    def _written(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


def in_simulation(
    target: Target,
    /,
    *,
    boards: Iterable[Board] = (),
    faults: Iterable[Fault] = (),
    real_time: bool = False,
    state_file: Path | None = None,
    variables: dict[str, str] | None = None,
    **arguments: Any,
) -> Any:
    """Call a function in a process of its own with the simulated NVML; what it returns, through JSON.

    ``boards`` and what follows it are for a function that only loads NVML: one that makes its own
    ``Simulation`` needs none of them. ``variables`` are added to its environment.
    """
    library = build_library()
    found = environment(library, boards, faults=faults, real_time=real_time, state_file=state_file)
    with Host(found | (variables or {})) as host:
        return host.call(target, **arguments)


def _spelled(target: Target) -> str:
    if isinstance(target, str):
        return target
    source = getsourcefile(target)
    assert source is not None, f"{target} is not in a file"
    return f"{source}:{target.__name__}"


def _found(spelled: str, modules: dict[str, Any]) -> Callable[..., Any]:
    where, _, name = spelled.rpartition(":")
    if where not in modules:
        modules[where] = _loaded(Path(where)) if where.endswith(".py") else import_module(where)
    return getattr(modules[where], name)


def _loaded(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _serve() -> None:
    """Answers requests on what was standard output; whatever functions print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    modules: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": _found(request["target"], modules)(**request["arguments"])}
            text = json.dumps(reply)
        except Exception:  # noqa: BLE001 - whatever it is, the caller is told
            text = json.dumps({"problem": format_exc()})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
