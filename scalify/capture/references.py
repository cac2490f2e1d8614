"""Reference functions of unknown operations, out of a Python file that the user names: this runs its code.

The file has a table of functions by the operations that they define::

    def fused_norm(x, weight, eps=1e-6):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight

    OPS = {"mylib::fused_norm.default": fused_norm}

A function is called as the operation was, by the names of its arguments, with tensors of the operands' types
on the meta device; what it does is captured, once for every use of other types or other arguments. What was
read is what is run: the digest is that of the very bytes.
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

import torch
from torch._ops import OpOverload

from scalify.capture.exported import export, program_of
from scalify.capture.failure import capture_failed
from scalify.capture.fx import DTYPES
from scalify.capture.target import built
from scalify.definitions import attributes_of
from scalify.errors import CaptureFailed, ScalifyError
from scalify.ir.graph import Graph, Node, TensorType
from scalify.load.torch_export.translate import translate

LARGEST_BYTES = 16_000_000
TABLE = "OPS"
Function = Callable[..., object]
_TORCH: Mapping[str, torch.dtype] = {ours: theirs for theirs, ours in DTYPES.items()}


class References:
    """The functions of one file, and what they compute where they were asked."""

    def __init__(self, path: Path) -> None:
        content = _content(path)
        self.file = path.name
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._functions = _table(_run(path, content), path)
        self._graphs: dict[object, Graph | ScalifyError] = {}

    def assumption(self) -> str:
        """That code was run, and which."""
        return f"{self.file} is code and was run to define operations (sha256 {self.sha256})"

    def text(self, target: str) -> str | None:
        """What an assumption calls the definition of a target."""
        function = self._function(target)
        return None if function is None else f"{_name(function)} of {self.file} computes"

    def graph(self, target: str, number: int, node: Node, operands: tuple[TensorType, ...]) -> Graph:
        """What result ``number`` of the function is, given such operands and the arguments of the node."""
        function = self._function(target)
        if function is None:
            raise CaptureFailed(f"{self.file} does not define {target}", hint=f"add it to {TABLE}")
        key = target, str(node.attrs.get("config", "")), operands
        if key not in self._graphs:
            try:
                self._graphs[key] = _captured(function, target, _Arguments(node, operands))
            except ScalifyError as error:
                self._graphs[key] = error
        known = self._graphs[key]
        if isinstance(known, ScalifyError):
            raise known
        return _with_result(known, number)

    def _function(self, target: str) -> Function | None:
        """By the full name, or the name without its overload."""
        found = self._functions.get(target)
        return found or self._functions.get(target.rpartition(".")[0])


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CaptureFailed(f"cannot read {path}: {reason}", hint="give the path of a Python file") from None
    if len(content) > LARGEST_BYTES:
        raise CaptureFailed(f"{path} is larger than {LARGEST_BYTES} bytes", hint="is it the right file?")
    return content


def _run(path: Path, content: bytes) -> ModuleType:
    """The file as a module. It imports what is installed, and nothing from beside it."""
    module = ModuleType(f"scalify_ops_{path.stem}")
    module.__file__ = str(path)
    try:
        exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
    except SystemExit:
        raise CaptureFailed(
            f"{path.name} ends the process that runs it", hint="define functions, no more"
        ) from None
    except Exception as error:
        raise capture_failed(
            error, what=f"{path.name} cannot be run", hint="run it with python by hand"
        ) from error
    return module


def _table(module: ModuleType, path: Path) -> Mapping[str, Function]:
    table: object = getattr(module, TABLE, None)
    if not isinstance(table, Mapping) or not table:
        raise CaptureFailed(
            f"{path.name} has no table {TABLE}",
            hint=f'write {TABLE} = {{"mylib::fused_norm.default": reference_function}}',
        )
    functions: dict[str, Function] = {}
    for target, function in cast("Mapping[object, object]", table).items():
        if not isinstance(target, str) or not callable(function):
            raise CaptureFailed(
                f"{TABLE} of {path.name} has {target!r}: {function!r}", hint="map names to functions"
            )
        functions[target.replace("::", ".")] = function
    return functions


def _name(function: Function) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


class _Arguments:
    """What an operation was called with. Its ``tensors`` have the operands' types, and no values."""

    def __init__(self, node: Node, operands: tuple[TensorType, ...]) -> None:
        attributes = attributes_of(node)
        if attributes is None:
            raise CaptureFailed("its arguments are not known by name", hint="define it by a graph: --define")
        self.tensors = [torch.empty(one.shape, dtype=_TORCH[one.dtype], device="meta") for one in operands]
        self._used: set[int] = set()
        values = {name: self._value(value) for name, value in attributes.items()}
        positional = values.pop("", []) if attributes else list(self.tensors)
        if attributes and len(self._used) != len(self.tensors):
            raise CaptureFailed(
                "it is given something beside its arguments (a draw of random numbers)",
                hint="an operation that draws cannot be defined",
            )
        self.positional = cast("list[object]", positional)
        self.named = values

    def _value(self, value: object) -> object:
        match value:
            case list():
                return [self._value(entry) for entry in cast("list[object]", value)]
            case {"tensor": int(number)} if 0 <= number < len(self.tensors):
                self._used.add(number)
                return self.tensors[number]
            case {"dtype": str(name)} if name in _TORCH:
                return _TORCH[name]
            case {"complex": [int() | float() as real, int() | float() as imaginary]}:
                return complex(real, imaginary)
            case dict():
                raise CaptureFailed(
                    f"an argument of it, {json.dumps(value)[:80]}, cannot be given to a function",
                    hint="define it by a graph: --define",
                )
            case _:
                return value


def _captured(function: Function, target: str, arguments: _Arguments) -> Graph:
    """What one call does, as a graph whose inputs are its tensors in the order of the operands."""
    try:
        signature = inspect.signature(function)
        named = {**_left_out(target, signature, arguments), **arguments.named}
        signature.bind(*arguments.positional, **named)
    except (TypeError, ValueError) as error:
        raise CaptureFailed(
            f"{_name(function)} cannot be called as the operation is: {error}",
            hint="give it the operation's arguments, by their names",
        ) from None

    def call(*given: torch.Tensor) -> object:
        now = dict(zip(map(id, arguments.tensors), given, strict=True))
        return function(
            *[_replaced(value, now) for value in arguments.positional],
            **{name: _replaced(value, now) for name, value in named.items()},
        )

    return translate(program_of(export(built((call, tuple(arguments.tensors)))), name=target))


def _with_result(graph: Graph, number: int) -> Graph:
    """The same with one result alone."""
    written = [output.name for output in graph.outputs if output.alias is not None]
    if written:
        raise CaptureFailed(
            f"it writes to its argument {written[0]}",
            hint="let it return what it computes, and change nothing",
        )
    results = [output for output in graph.outputs if output.name == f"output_{number}"]
    if not results:
        raise CaptureFailed(f"it has no result {number}", hint="let it return as many as the operation does")
    return replace(graph, outputs=tuple(results))


def _left_out(target: str, signature: inspect.Signature, arguments: _Arguments) -> Mapping[str, object]:
    """Arguments that the call left to the operator's own defaults, where the operator is registered here.

    A function's default may be another one; without the operator it is taken to be the same.
    """
    operator: object = torch.ops
    for part in target.split("."):
        operator = getattr(operator, part, None)
    if not isinstance(operator, OpOverload):
        return {}
    # There is no public way to an operator's schema.
    schema = operator._schema  # pyright: ignore[reportPrivateUsage]
    taken = list(signature.parameters)[len(arguments.positional) :]
    return {
        argument.name: argument.default_value
        for argument in schema.arguments
        if argument.has_default_value() and argument.name in taken and argument.name not in arguments.named
    }


def _replaced(value: object, by_old: Mapping[int, torch.Tensor]) -> object:
    if isinstance(value, torch.Tensor):
        return by_old[id(value)]
    if isinstance(value, list):
        return [_replaced(entry, by_old) for entry in cast("list[object]", value)]
    return value
