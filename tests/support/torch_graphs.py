"""Small PyTorch programs as graphs, through a file and through memory, and their values in NumPy."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scalify.capture.exported import export, program_of
from scalify.capture.target import built
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.load.torch_export import read
from scalify.load.torch_export.beside import Beside, as_json
from scalify.load.torch_export.translate import translate

Array = NDArray[Any]


Function = Callable[..., object]


def reals(*shape: int) -> Tensor:
    """Random numbers that are not round."""
    return torch.randn(*shape, dtype=torch.float64)


def integers(low: int, high: int, *shape: int) -> Tensor:
    """Random integers."""
    return torch.randint(low, high, shape)


def booleans(*shape: int) -> Tensor:
    """Random truth values."""
    return torch.randn(*shape) > 0


class Cases:
    """Functions under test with their arguments, by the function's name."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self._cases: dict[str, tuple[Function, tuple[Tensor, ...]]] = {}

    def add(self, *args: Tensor) -> Callable[[Function], Function]:
        """Decorates a function that is called with these arguments."""

        def added(function: Function) -> Function:
            self._cases[function.__name__] = (function, args)
            return function

        return added

    @property
    def names(self) -> tuple[str, ...]:
        """Of every case."""
        return tuple(self._cases)

    def __getitem__(self, name: str) -> tuple[Function, tuple[Tensor, ...]]:
        return self._cases[name]


class Applied(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> object:
        return self.function(*args)


def through_file(program: object, args: Sequence[object], folder: Path) -> Graph:
    """The graph of an archive that torch.export wrote."""
    exported = export(built((program, tuple(args))))
    path = folder / "program.pt2"
    torch.export.save(exported, path, extra_files={"scalify.json": json.dumps(as_json(Beside()))})
    graph = read(path)
    check(graph)
    return graph


def through_memory(program: object, args: Sequence[object], name: str = "program") -> Graph:
    """The graph of an exported program that was never written."""
    graph = translate(program_of(export(built((program, tuple(args)))), name=name))
    check(graph)
    return graph


def values(graph: Graph, module: nn.Module | None, args: Sequence[object]) -> list[Array]:
    """The outputs of a one-device graph for these parameters and inputs, without updated buffers."""
    state: dict[str, Tensor] = (
        {} if module is None else {**dict(module.named_parameters()), **dict(module.named_buffers())}
    )
    tensors = iter(arg for arg in args if isinstance(arg, Tensor))
    given: dict[str, Array] = {}
    for node in graph.inputs():
        label = str(node.attrs["name"])
        tensor = state[label] if node.attrs["role"] != "input" else next(tensors)
        given[label] = tensor.detach().cpu().numpy()
    found = evaluate(graph, given)
    return [found[output.name][0] for output in graph.outputs if output.alias is None]


def expected(program: Callable[..., object], args: Sequence[object]) -> list[Array]:
    """What PyTorch gives."""
    with torch.no_grad():
        answer = program(*args)
    leaves = answer if isinstance(answer, tuple | list) else (answer,)
    return [leaf.detach().numpy() for leaf in leaves if isinstance(leaf, Tensor)]


def assert_same(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    """Equal values, float64 against float64."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def opaque_targets(graph: Graph) -> list[str]:
    """What the graph holds without a meaning."""
    return [str(node.attrs["target"]) for node in graph.nodes if node.op == "opaque"]


def counted(graph: Graph) -> Mapping[str, int]:
    """How often each op occurs."""
    found: dict[str, int] = {}
    for node in graph.nodes:
        found[node.op] = found.get(node.op, 0) + 1
    return found


def assert_translates(function: Function, args: Sequence[Tensor], folder: Path) -> None:
    """Nothing opaque, the same values as PyTorch, and the same graph through a file as through memory."""
    graph = through_file(Applied(function), args, folder)

    assert opaque_targets(graph) == []
    assert_same(values(graph, None, args), expected(function, args))
    assert through_memory(Applied(function), args).nodes == graph.nodes
