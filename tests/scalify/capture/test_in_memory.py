"""Programs in memory are read: exported ones, FX graphs of either kind, modules with arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from functorch.compile import make_boxed_func
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule, symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx

from scalify import verify
from scalify.capture.in_memory import graph_of
from scalify.errors import CaptureFailed
from scalify.ir.evaluate import evaluate
from scalify.verdict import Proved


class Block(nn.Module):
    """Something of everything: a parameter, a buffer, a constant, a view and a reduction."""

    scale: Tensor

    def __init__(self, *, is_fused: bool = False) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 6, bias=False)
        self.register_buffer("scale", torch.full((6,), 0.5))
        self.is_fused = is_fused

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.up(x)
        gate = nn.functional.silu(hidden) if self.is_fused else hidden * torch.sigmoid(hidden)
        return (self.down(gate) + x) * self.scale


X = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))


def captured_by_compile(module: nn.Module, *args: Tensor) -> GraphModule:
    """What a backend of torch.compile gets of AOTAutograd."""
    taken: list[GraphModule] = []

    def compiler(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        taken.append(graph)
        return make_boxed_func(graph.forward)

    torch.compiler.reset()
    with torch.no_grad():
        torch.compile(module, backend=aot_autograd(fw_compiler=compiler), dynamic=False)(*args)
    (graph,) = taken
    return graph


def captured_before_aot(module: nn.Module, *args: Tensor) -> GraphModule:
    """What a backend gets that takes dynamo's own graph: functions of torch and methods."""
    taken: list[GraphModule] = []

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        taken.append(graph)
        return graph.forward

    torch.compiler.reset()
    with torch.no_grad():
        torch.compile(module, backend=backend, dynamic=False)(*args)
    (graph,) = taken
    return graph


def test_a_module_with_arguments_against_an_exported_program() -> None:
    verdict = verify((Block(), (X,)), torch.export.export(Block(is_fused=True), (X,)))
    assert isinstance(verdict, Proved)
    assert "up.weight: replicated" in verdict.assumptions


def test_a_graph_of_make_fx_computes_what_the_function_does() -> None:
    module = Block()

    def run(x: Tensor) -> Tensor:
        return module(x)

    graph = graph_of(make_fx(run, tracing_mode="fake", _allow_non_fake_inputs=True)(X))
    values: dict[str, Any] = {
        str(node.attrs["name"]): _of(module, str(node.attrs["name"]), node.type.shape)
        for node in graph.inputs()
    }
    (got,) = evaluate(graph, values).values()
    assert np.asarray(got[0]) == pytest.approx(module(X).detach().numpy(), abs=1e-5)


def _of(module: Block, name: str, shape: tuple[int, ...]) -> Any:
    """Parameters have lost their names: in the order in which they are used, their shapes tell."""
    if name.startswith("x"):
        return X.numpy()
    tensors = [*module.parameters(), *module.buffers()]
    return next(tensor.detach().numpy() for tensor in tensors if tuple(tensor.shape) == shape)


def test_two_functions_by_make_fx() -> None:
    def plain(x: Tensor, w: Tensor) -> Tensor:
        return torch.softmax(x @ w, -1)

    def by_hand(x: Tensor, w: Tensor) -> Tensor:
        e = torch.exp(x @ w)
        return e / e.sum(-1, keepdim=True)

    args = torch.randn(3, 6), torch.randn(6, 4)
    assert isinstance(verify(make_fx(plain)(*args), make_fx(by_hand, tracing_mode="fake")(*args)), Proved)

    def doubled(x: Tensor, w: Tensor) -> Tensor:
        return by_hand(x, w) * 2

    wrong = make_fx(doubled)(*args)
    assert not isinstance(verify(make_fx(plain)(*args), wrong), Proved)


@pytest.mark.parametrize("of", [captured_by_compile, captured_before_aot])
def test_a_graph_that_torch_compile_gave_to_a_backend(
    of: Callable[..., GraphModule],
) -> None:
    """Both sides come the same way: inputs are numbered, and paired by place."""
    torch.manual_seed(0)
    plain, fused = of(Block(), X), of(Block(is_fused=True), X)
    assert isinstance(verify(plain, fused), Proved)


def test_a_symbolic_trace_needs_arguments() -> None:
    traced = symbolic_trace(Block())
    with pytest.raises(CaptureFailed, match="does not record the types"):
        graph_of(traced)
    assert isinstance(verify((Block(), (X,)), (traced, (X,))), Proved)


def test_a_module_alone_is_no_program() -> None:
    with pytest.raises(CaptureFailed, match="without arguments"):
        graph_of(Block())


def test_what_is_no_program_is_told_so() -> None:
    with pytest.raises(CaptureFailed):
        graph_of(3)


def test_a_write_to_an_input_is_an_output() -> None:
    def step(cache: Tensor, x: Tensor) -> Tensor:
        cache.add_(x)
        return cache * 2

    args = torch.zeros(3), torch.ones(3)
    graph = graph_of(make_fx(step)(*args))
    assert {output.alias for output in graph.outputs} == {None, "cache_1"}
