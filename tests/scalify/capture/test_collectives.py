"""Programs of every rank, captured alone and merged: their values against PyTorch's on the whole."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch_graphs import Array, counted, opaque_targets, reals

from scalify.capture import captured
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.mesh import Mesh

TWO = Mesh(axes=(("tp", 2),))
FOUR = Mesh(axes=(("tp", 4),))
GRID = Mesh(axes=(("dp", 2), ("tp", 2)))

Groups = Mapping[str, ProcessGroup]
Program = Callable[[Tensor, int, Groups], object]


def on_every_rank(program: Program, x: Tensor, mesh: Mesh) -> list[list[Array]]:
    """Outputs by rank. The input is cut along its first dimension over all ranks of the mesh."""

    def build(rank: int, groups: Groups) -> object:
        def on_shard(shard: Tensor) -> object:
            return program(shard, rank, groups)

        return on_shard, (x.chunk(mesh.size)[0],)

    graph = captured(build, name="program", mesh=mesh)
    check(graph)
    assert opaque_targets(graph) == []
    label = str(graph.inputs()[0].attrs["name"])
    found = evaluate(graph, {label: [part.numpy() for part in x.chunk(mesh.size)]})
    return [[found[output.name][rank] for output in graph.outputs] for rank in range(mesh.size)]


def test_functional_collectives_along_every_dimension() -> None:
    def program(x: Tensor, rank: int, groups: Groups) -> object:
        group = groups["tp"]
        return (
            functional.all_reduce(x, "sum", group),
            functional.all_reduce(x, "max", group),
            functional.all_gather_tensor(x, 0, group),
            functional.all_gather_tensor(x, 1, group),
            functional.reduce_scatter_tensor(x, "sum", 1, group),
            functional.all_to_all_single(x, None, None, group),
        )

    x = reals(8, 4)
    parts = x.chunk(2)
    for rank, (total, highest, rows, columns, part, mixed) in enumerate(on_every_rank(program, x, TWO)):
        np.testing.assert_allclose(total, (parts[0] + parts[1]).numpy())
        np.testing.assert_allclose(highest, torch.maximum(*parts).numpy())
        np.testing.assert_allclose(rows, x.numpy())
        np.testing.assert_allclose(columns, torch.cat(parts, 1).numpy())
        np.testing.assert_allclose(part, (parts[0] + parts[1]).chunk(2, 1)[rank].numpy())
        np.testing.assert_allclose(mixed, torch.cat([part.chunk(2)[rank] for part in parts]).numpy())


def test_a_gather_along_another_dimension_is_one_node() -> None:
    def build(rank: int, groups: Groups) -> object:
        def program(x: Tensor) -> object:
            rows = functional.all_gather_tensor(x, 2, groups["tp"])
            return functional.reduce_scatter_tensor(rows, "sum", 1, groups["tp"])

        return program, (torch.empty(2, 4, 3, device="meta"),)

    graph = captured(build, name="program", mesh=FOUR)

    assert counted(graph) == {"input": 1, "all_gather": 1, "reduce_scatter": 1}


def test_collectives_that_write_in_place() -> None:
    def program(x: Tensor, rank: int, groups: Groups) -> object:
        group = groups["tp"]
        total = x * 2
        dist.all_reduce(total, group=group)
        rows = x.new_empty(8, 4)
        # The name that code in use has.
        dist.all_gather_into_tensor(rows, x, group=group)  # pyright: ignore[reportDeprecated]
        pieces = [torch.empty_like(x) for _ in range(4)]
        dist.all_gather(pieces, x, group=group)
        return total, rows, torch.cat(pieces, 1)

    x = reals(8, 4)
    for total, rows, columns in on_every_rank(program, x, FOUR):
        np.testing.assert_allclose(total, 2 * torch.stack(x.chunk(4)).sum(0).numpy())
        np.testing.assert_allclose(rows, x.numpy())
        np.testing.assert_allclose(columns, torch.cat(x.chunk(4), 1).numpy())


def test_groups_along_each_axis_of_a_mesh() -> None:
    def program(x: Tensor, rank: int, groups: Groups) -> object:
        return functional.all_reduce(x, "sum", groups["tp"]), functional.all_reduce(x, "avg", groups["dp"])

    x = reals(4, 3)
    parts = [part.numpy() for part in x.chunk(4)]
    for rank, (over_tp, over_dp) in enumerate(on_every_rank(program, x, GRID)):
        row, column = divmod(rank, 2)
        np.testing.assert_allclose(over_tp, parts[2 * row] + parts[2 * row + 1])
        np.testing.assert_allclose(over_dp, (parts[column] + parts[2 + column]) / 2)


def test_what_depends_on_the_rank_is_affine_in_it() -> None:
    def program(x: Tensor, rank: int, groups: Groups) -> object:
        whole = functional.all_gather_tensor(x, 0, groups["tp"])
        number = dist.get_rank(groups["tp"])
        return (
            whole[2 * number : 2 * number + 2],
            x * number,
            torch.arange(number * 3, number * 3 + 3),
            whole[rank],
        )

    x = reals(8, 4)
    for rank, (mine, scaled, counter, row) in enumerate(on_every_rank(program, x, FOUR)):
        part = x.chunk(4)[rank].numpy()
        np.testing.assert_allclose(mine, part)
        np.testing.assert_allclose(scaled, part * rank)
        np.testing.assert_allclose(counter, np.arange(rank * 3, rank * 3 + 3))
        np.testing.assert_allclose(row, x[rank].numpy())


class Mlp(nn.Module):
    """Gate and up by columns, down by rows."""

    def __init__(self, hidden: int, inner: int, group: ProcessGroup | None = None) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, inner, bias=False, dtype=torch.float64)
        self.down = nn.Linear(inner, hidden, bias=False, dtype=torch.float64)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        made = self.down(F.silu(self.up(x)))
        return made if self.group is None else functional.all_reduce(made, "sum", self.group)


def test_a_tensor_parallel_mlp_computes_what_the_whole_one_does() -> None:
    whole = Mlp(6, 8)
    x = reals(3, 6)

    def build(rank: int, groups: Groups) -> object:
        with torch.device("meta"):
            return Mlp(6, 4, groups["tp"]), (x.to("meta"),)

    graph = captured(build, name="mlp", mesh=TWO)
    up, down = whole.up.weight.detach(), whole.down.weight.detach()
    given = {
        "up.weight": [part.numpy() for part in up.chunk(2, 0)],
        "down.weight": [part.numpy() for part in down.chunk(2, 1)],
        "x": x.numpy(),
    }
    for value in evaluate(graph, given)["output_0"]:
        np.testing.assert_allclose(value, whole(x).detach().numpy())
    assert {node.scope for node in graph.nodes if node.op == "einsum"} == {"up", "down"}
