"""The user's build function, by name, and what it returns."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import nn

from scalify.errors import CaptureFailed

Build = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A module and the arguments to call it with."""

    module: nn.Module
    args: tuple[object, ...]
    kwargs: Mapping[str, object]


class _Called(nn.Module):
    """A plain function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: object, **kwargs: object) -> object:
        return self._function(*args, **kwargs)


def load_build(target: str) -> Build:
    """``path/to/module.py:build`` or ``package.module:build``, imported: this runs the user's code."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise CaptureFailed(f"{target!r} names no function", hint="write module.py:build")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_package(place)
    build = getattr(module, name, None)
    if not callable(build):
        raise CaptureFailed(f"{place} has no function {name!r}", hint=f"define {name} in {place}")
    return build


def _from_package(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CaptureFailed(
            f"there is no module {error.name!r} to import {name!r}", hint="give the path of a Python file"
        ) from error


def _from_file(path: Path) -> object:
    """The module's own folder can be imported from, as when Python runs it."""
    if not path.is_file():
        raise CaptureFailed(f"there is no file {path}", hint="give the path of a Python file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def built(answer: object) -> Built:
    """What a build function returned: ``(module, args)`` or ``(module, args, kwargs)``."""
    module, args, kwargs = parts_of(answer)
    return Built(module=_module(module), args=args, kwargs=kwargs)


def parts_of(answer: object) -> tuple[object, tuple[object, ...], Mapping[str, object]]:
    """The module or function that a build function returned, its arguments and its named ones."""
    if not isinstance(answer, tuple) or not 2 <= len(cast("tuple[object, ...]", answer)) <= 3:
        raise CaptureFailed(
            "the build function should return (module, args) or (module, args, kwargs)",
            hint="args is a tuple of example inputs; tensors on the meta device will do",
        )
    parts = cast("tuple[object, ...]", answer)
    args = parts[1] if isinstance(parts[1], tuple) else (parts[1],)
    kwargs = parts[2] if len(parts) == 3 else {}
    if not isinstance(kwargs, Mapping):
        raise CaptureFailed(
            "the third part of what the build function returns is no mapping", hint="give kwargs"
        )
    return parts[0], cast("tuple[object, ...]", args), cast("Mapping[str, object]", kwargs)


def _module(value: object) -> nn.Module:
    if isinstance(value, nn.Module):
        return value
    if callable(value):
        return _Called(value)
    raise CaptureFailed(
        "the build function returns neither a module nor a function", hint="return (module, args)"
    )


def is_distributed_tensor(value: object) -> bool:
    """Whether a value is a DTensor, which torch.export does not take."""
    return isinstance(value, torch.Tensor) and type(value).__name__ == "DTensor"
