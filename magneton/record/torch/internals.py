"""What the recorder needs of PyTorch and Python that has no public name, in one place.

Kept small on purpose: when a release renames something, this is the file to mend.
"""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false
# All names below are private to PyTorch or CPython; there is no public way to the same facts.

import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.multiprocessing.reductions import StorageWeakRef

OperatorOverload = OpOverload
_PYTHON_KERNEL = re.compile(r"(\w+)(?:\[alias\])?: registered at .*\.py:\d+ :: ")


def tensor_identity(tensor: Tensor) -> int:
    """The same for every Python object that stands for this tensor; free for reuse once it is gone."""
    return tensor._cdata


def storage_identity(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def weak_tensor(tensor: Tensor) -> object:
    """While this is held, no other tensor gets the identity of ``tensor``; it keeps no memory alive."""
    return torch._C._WeakTensorRef(tensor)


def weak_storage(tensor: Tensor) -> object:
    """While this is held, no other storage gets the identity of this one; it keeps no memory alive."""
    return StorageWeakRef(tensor.untyped_storage())


def write_counter(tensor: Tensor) -> int | None:
    """How often the tensor was written to; inference tensors do not count."""
    return None if tensor.is_inference() else tensor._version


def schema_of(func: OpOverload) -> torch.FunctionSchema:
    return func._schema


def call_parts(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a composite as its parts, as it runs where gradients are tracked.

    The C++ composite itself: ``func.decompose()`` would prefer Python decompositions that the user's
    own run never sees.
    """
    return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def has_kernel(name: str, dispatch_key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, dispatch_key)


@lru_cache(maxsize=4096)
def python_keys(name: str) -> frozenset[str]:
    """The dispatch keys under which an operator's kernel is a Python function."""
    lines = torch._C._dispatch_dump(name).splitlines()
    return frozenset(match[1] for line in lines if (match := _PYTHON_KERNEL.match(line)))


def python_kernel(func: OpOverload, backend: str) -> Callable[..., Any] | None:
    """The Python function that runs ``func`` on ``backend`` ("CPU", "CUDA"), under its key; or None."""
    keys = python_keys(func.name())
    for key in (backend, "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
        if key in keys:
            return partial(func._op_dk, getattr(torch._C.DispatchKey, key))
    return None


@contextmanager
def unobserved(device_type: str) -> Generator[None]:
    """No mode of anybody sees what happens inside, nothing is cast, no gradient is tracked."""
    uncast = (
        torch.autocast(device_type, enabled=False)
        if torch.is_autocast_enabled(device_type)
        else nullcontext()
    )
    with torch.no_grad(), torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction(), uncast:
        yield


def calling_frame() -> FrameType | None:
    """The frame that called the function that called this."""
    return sys._getframe(2)
