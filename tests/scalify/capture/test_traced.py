"""PyTorch's own tensor parallelism, captured over each rank's local tensors."""

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch_graphs import Array, counted, opaque_targets, reals

from scalify.capture import captured
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh

TWO = Mesh(axes=(("tp", 2),))
Groups = Mapping[str, ProcessGroup]


class Block(nn.Module):
    """Attention and an MLP between norms."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.RMSNorm(8)
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8, bias=False)
        self.v = nn.Linear(8, 8, bias=False)
        self.o = nn.Linear(8, 8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        q, k, v = (
            project(normed).unflatten(-1, (-1, 2)).transpose(1, 2) for project in (self.q, self.k, self.v)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


PLAN: dict[str, ParallelStyle] = {
    "q": ColwiseParallel(),
    "k": ColwiseParallel(),
    "v": ColwiseParallel(),
    "o": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}


def parallel_block(rank: int, groups: Groups) -> object:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    with torch.device("meta"):
        block, x = Block().double(), torch.empty(2, 3, 8, dtype=torch.float64)
    return parallelize_module(block, mesh, PLAN), (x,)


def shards(block: nn.Module) -> dict[str, list[Array]]:
    """The block's parameters as the plan lays them on two ranks."""
    found: dict[str, list[Array]] = {}
    for name, parameter in block.named_parameters():
        layer, kind = name.split(".")
        axis = None
        if isinstance(PLAN.get(layer), ColwiseParallel):
            axis = 0
        elif layer in PLAN and kind == "weight":
            axis = 1
        whole = parameter.detach()
        parts = (whole, whole) if axis is None else whole.chunk(2, axis)
        found[name] = [part.numpy() for part in parts]
    return found


def assert_computes_the_block(graph: Graph) -> None:
    check(graph)
    assert opaque_targets(graph) == []
    block, x = Block().double(), reals(2, 3, 8)
    for value in evaluate(graph, {**shards(block), "x": x.numpy()})["output_0"]:
        np.testing.assert_allclose(value, block(x).detach().numpy(), rtol=1e-9)


def test_a_parallelized_block_computes_what_the_whole_one_does() -> None:
    graph = captured(parallel_block, name="block", mesh=TWO)

    assert_computes_the_block(graph)
    assert counted(graph)["all_reduce"] == 2


def test_nodes_know_their_submodule_and_the_users_line() -> None:
    graph = captured(parallel_block, name="block", mesh=TWO)

    assert {"q", "k", "v", "o", "up", "down", "norm"} <= {node.scope for node in graph.nodes}
    reduces = [node for node in graph.nodes if node.op == "all_reduce"]
    assert [node.scope for node in reduces] == ["o", "down"]
    assert all(node.site is not None and node.site.file == __file__ for node in reduces)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16, bias=False)
        self.down = nn.Linear(16, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.up(self.norm(x))))


def test_sequence_parallelism_gathers_and_scatters_along_the_sequence() -> None:
    def build(rank: int, groups: Groups) -> object:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        with torch.device("meta"):
            mlp, x = Mlp().double(), torch.empty(2, 2, 8, dtype=torch.float64)
        plan: dict[str, ParallelStyle] = {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1)),
        }
        return parallelize_module(mlp, mesh, plan), (DTensor.from_local(x, mesh, [Shard(1)]),)

    graph = captured(build, name="mlp", mesh=TWO)
    check(graph)
    mlp, x = Mlp().double(), reals(2, 4, 8)
    up, down = mlp.up.weight.detach(), mlp.down.weight.detach()
    given = {
        "norm.weight": mlp.norm.weight.detach().numpy(),
        "norm.bias": mlp.norm.bias.detach().numpy(),
        "up.weight": [part.numpy() for part in up.chunk(2, 0)],
        "down.weight": [part.numpy() for part in down.chunk(2, 1)],
        "x": [part.numpy() for part in x.chunk(2, 1)],
    }

    assert opaque_targets(graph) == []
    collectives = [node for node in graph.nodes if node.op in ("all_gather", "reduce_scatter")]
    assert [(node.op, node.attrs["dim"]) for node in collectives] == [
        ("all_gather", 1),
        ("reduce_scatter", 1),
    ]
    for rank, value in enumerate(evaluate(graph, given)["output_0"]):
        np.testing.assert_allclose(value, mlp(x).chunk(2, 1)[rank].detach().numpy(), rtol=1e-9)
