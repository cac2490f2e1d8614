"""A user's own Python as a system: ``path.py:function`` builds something, and a step calls it once."""

import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from magneton.errors import MagnetonError
from magneton.system import CALLABLE, complete_options
from magneton.systems.running import Facts, Setup
from magneton.systems.snapshot import Snapshot
from magneton.systems.structure import named_leaves
from magneton.systems.torch_setting import found_flags, found_versions, use_device, use_threads
from magneton.systems.user_file import user_errors, user_function
from magneton.workload import CALL, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What the user's function returned: the thing to call, and what to call it with."""

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class CallableSystem:
    """Calls as the user's code would: under the grad mode that PyTorch starts with, on the user's device.

    Before each step the generators of random numbers are seeded, gradients that were not there are dropped,
    and arguments and buffers that the last step overwrote get their content back. Parameters that a step
    updates stay updated.
    """

    framework: Literal["torch"] = "torch"

    def load(self, setup: Setup) -> Facts:
        options = complete_options(CALLABLE, setup.options)
        self._path, function = Path(options["path"]), options["function"]
        self._seed = setup.workload.seed
        use_threads(setup.threads)
        use_device(setup.device)
        self._sow()
        build = user_function(self._path, function)
        with user_errors(self._path, f"{function}() in"):
            result = build()
        self._built = _checked(result, f"{function}() in {self._path}")
        self._inputs = _inputs(self._built)
        self._modules = _modules(self._built.target)
        modules = self._modules.values()
        buffers = (buffer for module in modules for buffer in module.buffers())
        self._snapshot = Snapshot((*self._inputs.values(), *buffers))
        self._stepped = False
        parameters = (parameter for module in modules for parameter in module.parameters())
        leaves = (tensor for tensor in (*self._inputs.values(), *parameters) if tensor.is_leaf)
        self._without_gradient = tuple(leaf for leaf in leaves if leaf.grad is None)
        return Facts(
            versions=found_versions(()),
            grad_mode="grad" if torch.is_grad_enabled() else "no_grad",
            mode="eager",
            dataflow_mode="eager",
            flags=found_flags(),
        )

    def phases(self) -> tuple[Phase, ...]:
        return (CALL,)

    def rewind(self, phase: Phase) -> None:
        self._sow()
        if self._stepped:
            self._snapshot.restore()
        for leaf in self._without_gradient:
            leaf.grad = None

    def step(self, phase: Phase) -> Mapping[str, Any]:
        self._stepped = True
        with user_errors(self._path, "calling what is built in"):
            output = self._built.target(*self._built.args, **self._built.kwargs)
        return dict(named_leaves(output, "output"))

    def uncompiled(self) -> AbstractContextManager[object]:
        return nullcontext()

    def roots(self) -> Mapping[str, Any]:
        return {**self._modules, "input": self._inputs}

    def _sow(self) -> None:
        random.seed(self._seed)
        np.random.seed(self._seed)  # the user's code may draw from the global generator
        torch.manual_seed(self._seed)


def _checked(result: object, where: str) -> Built:
    parts: tuple[Any, ...] = tuple(cast(Iterable[Any], result)) if isinstance(result, tuple) else ()
    well_formed = (
        len(parts) in (2, 3)
        and callable(parts[0])
        and isinstance(parts[1], tuple | list)
        and (len(parts) == 2 or isinstance(parts[2], Mapping))
    )
    if not well_formed:
        kinds = ", ".join(type(part).__name__ for part in parts) if parts else type(result).__name__
        raise MagnetonError(
            f"{where} returned ({kinds})" if parts else f"{where} returned {kinds}",
            hint="return (module_or_function, args) or (module_or_function, args, kwargs), args a tuple",
        )
    return Built(target=parts[0], args=tuple(parts[1]), kwargs=parts[2] if len(parts) == 3 else {})


def _inputs(built: Built) -> Mapping[str, Tensor]:
    """Tensors among the arguments and in the function's closure, by the names they have there."""
    named = {**_closure(built.target), **_arguments(built)}
    leaves = (leaf for name, value in named.items() for leaf in named_leaves(value, name))
    return {name: leaf for name, leaf in leaves if isinstance(leaf, Tensor)}


def _arguments(built: Built) -> Mapping[str, Any]:
    function = built.target.forward if isinstance(built.target, nn.Module) else built.target
    try:
        return inspect.signature(function).bind(*built.args, **built.kwargs).arguments
    except (TypeError, ValueError):  # written in C, or the call will fail, and then says why
        return {**{str(index): value for index, value in enumerate(built.args)}, **built.kwargs}


def _modules(target: Callable[..., Any]) -> Mapping[str, nn.Module]:
    """The modules that name operators and parameters: the target itself, or those its function refers to."""
    owner = getattr(target, "__self__", target)
    if isinstance(owner, nn.Module):
        return {"": owner}
    return {name: value for name, value in _closure(target).items() if isinstance(value, nn.Module)}


def _closure(target: Callable[..., Any]) -> Mapping[str, Any]:
    return inspect.getclosurevars(target).nonlocals if inspect.isfunction(target) else {}
