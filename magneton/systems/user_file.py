"""A user's Python file: import it, and turn what goes wrong in it into an error that names its line."""

import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from magneton.errors import MagnetonError
from magneton.names import unknown
from magneton.systems.memory import ran_out_of_memory

TAIL_LINES = 12


def user_function(path: Path, name: str) -> Callable[[], Any]:
    """The function ``name`` in the file at ``path``, which is imported as if it were run as a script."""
    module = _imported(path)
    function = getattr(module, name, None)
    if function is None:
        own = [key for key, value in vars(module).items() if _defined_in(value, module)]
        raise unknown(f"function in {path}:", name, own)
    if not callable(function):
        raise MagnetonError(f"{name} in {path} is not a function", hint="give the name of a function")
    return function


@contextmanager
def user_errors(path: Path, doing: str) -> Generator[None]:
    """Whatever is raised inside becomes a MagnetonError that names the file and line; running out of memory
    stays what it is, for the worker to report."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, MagnetonError) or ran_out_of_memory(error):
            raise
        raise _explained(error, path, doing) from error


def _imported(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"magneton_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise MagnetonError(f"{path} is no Python file", hint="give a file that ends in .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look their module up
    sys.path.insert(0, str(path.parent))  # the file may import its neighbours
    with user_errors(path, "importing"):
        spec.loader.exec_module(module)
    return module


def _defined_in(value: object, module: ModuleType) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _explained(error: BaseException, path: Path, doing: str) -> MagnetonError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [index for index, frame in enumerate(frames) if frame.filename == str(path)]
    line = frames[own[-1]].lineno if own else None
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = error.lineno
    shown = traceback.format_list(frames[own[0] :] if own else []) + traceback.format_exception_only(error)
    tail = "".join(shown).rstrip().splitlines()[-TAIL_LINES:]
    place = f"{path}:{line}" if line else str(path)
    return MagnetonError(
        f"{doing} {place} failed: {type(error).__name__}: {error}", hint="\n".join(["its traceback:", *tail])
    )
