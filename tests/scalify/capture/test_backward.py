"""Gradients as outputs: their values against autograd's own, and where in the user's source they stand."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed import ProcessGroup
from torch_graphs import Array, opaque_targets, reals

from scalify.capture import capture, captured
from scalify.capture.traced import RECORDED
from scalify.errors import CaptureFailed
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.ir.text import load

TWO = Mesh(axes=(("tp", 2),))
Groups = Mapping[str, ProcessGroup]


class Perceptron(nn.Module):
    """Norm, gated perceptron, and a loss of classes."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.norm = nn.LayerNorm(6)
        self.up, self.down = nn.Linear(6, 10), nn.Linear(5, 6, bias=False)
        self.head = nn.Linear(6, 4)

    def forward(self, ids: Tensor, x: Tensor, target: Tensor) -> Tensor:
        stream = self.embedding(ids) + x
        gate, value = self.up(self.norm(stream)).chunk(2, -1)
        stream = stream + self.down(F.silu(gate) * value)
        return F.cross_entropy(self.head(stream), target)


def numbers(module: nn.Module, names: tuple[str, ...], args: tuple[Tensor, ...]) -> dict[str, Array]:
    """What a graph of the module is given."""
    given = {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}
    return {**given, **{name: arg.detach().numpy() for name, arg in zip(names, args, strict=True)}}


def assert_gradients(graph: Graph, given: Mapping[str, Array], wanted: Mapping[str, Tensor]) -> None:
    check(graph)
    assert opaque_targets(graph) == []
    found = evaluate(graph, dict(given))
    for name, gradient in wanted.items():
        np.testing.assert_allclose(found[f"grad.{name}"][0], gradient.numpy(), rtol=1e-8, atol=1e-12)


def test_gradients_of_a_loss_are_those_of_autograd() -> None:
    module = Perceptron().double()
    x = reals(5, 6).requires_grad_()
    args = (torch.tensor([0, 3, 3, 6, 1]), x, torch.tensor([1, 0, 3, 3, -100]))
    graph = captured(lambda: (module, args), name="step", backward=True)

    loss = module(*args)
    named = {**dict(module.named_parameters()), "x": x}
    wanted = dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))

    assert_gradients(graph, numbers(module, ("ids", "x", "target"), args), wanted)
    assert [output.name for output in graph.outputs] == ["output_0", *(f"grad.{name}" for name in named)]


def test_results_without_a_loss_are_weighted_by_inputs() -> None:
    module = nn.Linear(3, 2).double()
    x, weight = reals(4, 3), reals(4, 2)
    graph = captured(lambda: (module, (x,)), name="layer", backward=True)

    wanted = torch.autograd.grad(module(x), list(module.parameters()), [weight])
    given = {**numbers(module, ("input",), (x,)), "grad.output_0": weight.numpy()}
    assert_gradients(graph, given, dict(zip(("weight", "bias"), wanted, strict=True)))


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).square().sum()


def gathered(x: Tensor, index: Tensor) -> Tensor:
    return (x.gather(1, index) * x[index[:, 0]][:, :2]).exp().sum()


def moved(x: Tensor) -> Tensor:
    rolled = torch.cat((x[:, 1:], x[:, :1]), 1).flip(0).tril()
    return (rolled * x.select(1, 0).unsqueeze(1)).var(-1).sum() + x.cumsum(0).logsumexp(1).prod()


def activated(x: Tensor) -> Tensor:
    parts = (F.gelu(x), F.gelu(x, approximate="tanh"), F.leaky_relu(x), F.relu(x), x.sigmoid(), x.tanh())
    return (
        torch.stack((*parts, F.softplus(x), F.rms_norm(x, (4,)), x.softmax(-1), F.elu(x), x.abs()))
        .square()
        .sum()
    )


def chosen(x: Tensor) -> Tensor:
    values, places = x.softmax(-1).topk(2, dim=-1)
    hits = F.one_hot(places, x.shape[-1]).to(x.dtype)
    kept = torch.where(x > 0, x, 0.5 * x).clamp(-1, 1).sort(-1).values
    return (values.unsqueeze(-1) * hits).sum(1).mul(kept).sum() + x.max(-1).values.sum() + x.amax()


CASES: Mapping[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "attention": (attended, (reals(2, 4, 3, 5), reals(2, 2, 3, 5), reals(2, 2, 3, 5))),
    "reads by index": (gathered, (reals(3, 4), torch.tensor([[0, 2], [1, 1], [2, 0]]))),
    "movement": (moved, (reals(3, 3),)),
    "activations": (activated, (reals(3, 4),)),
    "choices": (chosen, (reals(3, 4),)),
}


@pytest.mark.parametrize("name", CASES)
def test_backward_operators_mean_what_autograd_computes(name: str) -> None:
    function, args = CASES[name]
    given = [arg.clone().requires_grad_(arg.is_floating_point()) for arg in args]
    graph = captured(lambda: (function, tuple(given)), name="function", backward=True)

    learnt = {f"args_{place}": arg for place, arg in enumerate(given) if arg.requires_grad}
    wanted = torch.autograd.grad(function(*given), list(learnt.values()))
    values = {f"args_{place}": arg.detach().numpy() for place, arg in enumerate(given)}
    assert_gradients(graph, values, dict(zip(learnt, wanted, strict=True)))


class Entering(Function):
    """Copied forwards, summed backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total = grads[0].contiguous().clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


ENTERED = Entering.backward.__code__.co_firstlineno + 3


class Parallel(nn.Module):
    """A perceptron by columns and rows."""

    def __init__(self, ranks: int, group: ProcessGroup | None) -> None:
        super().__init__()
        self.up = nn.Linear(4, 6 // ranks, bias=False, dtype=torch.float64)
        self.down = nn.Linear(6 // ranks, 4, bias=False, dtype=torch.float64)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        entered = x if self.group is None else Entering.apply(x, self.group)
        made = self.down(F.silu(self.up(entered)))
        if self.group is not None:
            made = made.clone()
            dist.all_reduce(made, group=self.group)
        return made


def parallel(rank: int, groups: Groups) -> object:
    x = torch.empty(3, 4, dtype=torch.float64, device="meta", requires_grad=True)
    return Parallel(2, groups["tp"]).to("meta"), (x,)


def test_collectives_of_the_users_own_functions_are_part_of_the_backward_pass() -> None:
    graph = captured(parallel, name="parallel", mesh=TWO, backward=True)
    check(graph)
    whole, x, weight = Parallel(1, None), reals(3, 4).requires_grad_(), reals(3, 4)
    up, down = whole.up.weight.detach(), whole.down.weight.detach()
    given = {
        "up.weight": [part.numpy() for part in up.chunk(2, 0)],
        "down.weight": [part.numpy() for part in down.chunk(2, 1)],
        "x": x.detach().numpy(),
        "grad.output_0": weight.numpy(),
    }
    wanted = torch.autograd.grad(whole(x), [x, whole.up.weight, whole.down.weight], [weight])
    found = evaluate(graph, given)
    for rank in range(2):
        np.testing.assert_allclose(found["grad.x"][rank], wanted[0].numpy())
        np.testing.assert_allclose(found["grad.up.weight"][rank], wanted[1].chunk(2, 0)[rank].numpy())
        np.testing.assert_allclose(found["grad.down.weight"][rank], wanted[2].chunk(2, 1)[rank].numpy())


def test_nodes_of_the_backward_pass_stand_where_the_forward_pass_made_them() -> None:
    graph = captured(parallel, name="parallel", mesh=TWO, backward=True)

    assert all(node.site is not None and node.site.file == __file__ for node in graph.nodes if node.operands)
    reduces = [node for node in graph.nodes if node.op == "all_reduce"]
    assert [node.site.line for node in reduces if node.site][-1] == ENTERED
    products = [node for node in graph.nodes if node.op == "einsum"]
    line = Parallel.forward.__code__.co_firstlineno + 2
    assert [node.site.line for node in products if node.site] == [line] * 6
    assert {node.scope for node in products} == {"up", "down"}


def test_a_step_that_asks_for_gradients_itself_is_captured_with_them() -> None:
    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(reals(3, 2))

        def forward(self, x: Tensor) -> tuple[Tensor | None, ...]:
            for part in x.chunk(2):
                (part @ self.weight).square().sum().backward()
            return self.weight.grad, x

    module, x = Step(), reals(4, 3)
    graph = captured(lambda: (module, (x,)), name="step")

    wanted = module(x)[0]
    found = evaluate(graph, {"weight": module.weight.detach().numpy(), "x": x.numpy()})
    assert wanted is not None
    assert graph.notes == (RECORDED,)
    np.testing.assert_allclose(found["output_0"][0], wanted.numpy())


def test_what_wants_no_gradient_is_told(tmp_path: Path) -> None:
    with pytest.raises(CaptureFailed, match="no result depends on a parameter"):
        captured(lambda: (torch.relu, (reals(2),)), name="relu", backward=True)


def test_a_captured_backward_pass_is_a_graph_as_text(tmp_path: Path) -> None:
    source = tmp_path / "layer.py"
    source.write_text(
        "import torch\n\ndef build():\n    return torch.nn.Linear(3, 1), (torch.zeros(2, 3),)\n"
    )
    (path,) = capture(f"{source}:build", tmp_path / "layer.scg", backward=True)

    assert [output.name for output in load(path).outputs] == ["output_0", "grad.weight", "grad.bias"]
    with pytest.raises(CaptureFailed, match="per rank"):
        capture(f"{source}:build", tmp_path / "layer.scg", mesh=TWO, per_rank=True, backward=True)
