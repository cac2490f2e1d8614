"""Ways in which ranks meet, each a case: what every rank has afterwards, put together by hand."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as learning
from torch import Tensor
from torch.distributed import ProcessGroup
from torch_graphs import opaque_targets, reals

from scalify.capture import captured
from scalify.errors import CaptureFailed
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.ir.unrolled import ranked

LINE = Mesh(axes=(("tp", 4),))
GRID = Mesh(axes=(("dp", 2), ("tp", 2)))
torch.manual_seed(0)
PARTS = reals(4, 4, 3)
TOTAL = PARTS.sum(0)
WHOLE = PARTS.reshape(16, 3)
# How many rows each rank of a row sends to each of a column.
COUNTS = ((1, 2, 1, 0), (4, 0, 0, 0), (0, 2, 0, 2), (1, 1, 1, 1))

Program = Callable[[Tensor, int, ProcessGroup], object]
CASES: dict[str, tuple[Program, Callable[[int], Tensor], Mesh]] = {}


def case(wanted: Callable[[int], Tensor], mesh: Mesh = LINE) -> Callable[[Program], Program]:
    """Decorates what a rank runs, with what it has afterwards."""

    def added(program: Program) -> Program:
        CASES[program.__name__] = (program, wanted, mesh)
        return program

    return added


@case(lambda rank: PARTS[rank - 1])
def permuted(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return functional.permute_tensor(x.reshape(-1), [1, 2, 3, 0], group).reshape(4, 3)


@case(lambda rank: PARTS[(0, 2, 1, 3)[rank]])
def permuted_some_to_themselves(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return functional.permute_tensor(x.reshape(-1), [0, 2, 1, 3], group).reshape(4, 3)


@case(lambda rank: PARTS[rank ^ 1], GRID)
def swapped_within_groups(x: Tensor, rank: int, group: ProcessGroup) -> object:
    sizes = [0, 0]
    sizes[1 - rank % 2] = 4
    return functional.all_to_all_single(x, sizes, sizes, group)


@case(lambda rank: PARTS[rank - 1])
def passed_on_in_place(x: Tensor, rank: int, group: ProcessGroup) -> object:
    given, taken = [0] * 4, [0] * 4
    given[(rank + 1) % 4] = taken[rank - 1] = 4
    result = torch.empty_like(x)
    dist.all_to_all_single(result, x, taken, given, group=group)
    return result


def sent_to(rank: int) -> Tensor:
    starts = [sum(row[:rank]) for row in COUNTS]
    return torch.cat([PARTS[source, at : at + COUNTS[source][rank]] for source, at in enumerate(starts)])


@case(sent_to)
def exchanged_unevenly(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return functional.all_to_all_single(x, [row[rank] for row in COUNTS], list(COUNTS[rank]), group)


@case(lambda rank: WHOLE if rank == 1 else PARTS[rank])
def gathered_to_a_root(x: Tensor, rank: int, group: ProcessGroup) -> object:
    pieces = [torch.empty_like(x) for _ in range(4)] if rank == 1 else None
    dist.gather(x, pieces, dst=1, group=group)
    return x if pieces is None else torch.cat(pieces)


@case(lambda rank: PARTS[2, rank : rank + 1])
def scattered_from_a_root(x: Tensor, rank: int, group: ProcessGroup) -> object:
    piece = x.new_empty(1, 3)
    dist.scatter(piece, list(x.chunk(4)) if rank == 2 else None, src=2, group=group)
    return piece


@case(lambda rank: TOTAL if rank == 2 else PARTS[rank])
def reduced_to_a_root(x: Tensor, rank: int, group: ProcessGroup) -> object:
    total = x.clone()
    dist.reduce(total, 2, group=group)
    return total if rank == 2 else x


@case(lambda rank: PARTS[2])
def spread_in_place(x: Tensor, rank: int, group: ProcessGroup) -> object:
    copy = x.clone()
    dist.broadcast(copy, group_src=2, group=group)
    return copy


@case(lambda rank: PARTS[rank - 1])
def sent_around(x: Tensor, rank: int, group: ProcessGroup) -> object:
    taken = torch.empty_like(x)
    if rank % 2 == 0:
        dist.send(x, (rank + 1) % 4, group=group)
    dist.recv(taken, (rank - 1) % 4, group=group)
    if rank % 2 == 1:
        dist.send(x, (rank + 1) % 4, group=group)
    return taken


@case(lambda rank: torch.cat([TOTAL, 2 * TOTAL]))
def reduced_together(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return torch.cat(functional.all_reduce_coalesced([x, x * 2], "sum", group))


@case(lambda rank: torch.cat([WHOLE, 2 * WHOLE]))
def gathered_together(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return torch.cat(functional.all_gather_into_tensor_coalesced([x, x * 2], group))


@case(lambda rank: torch.cat([TOTAL[rank : rank + 1], 2 * TOTAL[rank : rank + 1]]))
def scattered_together(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return torch.cat(functional.reduce_scatter_tensor_coalesced([x, x * 2], "sum", [0, 0], group))


@case(lambda rank: 2 * TOTAL)
def awaited(x: Tensor, rank: int, group: ProcessGroup) -> object:
    total = x.clone()
    work = dist.all_reduce(total, group=group, async_op=True)
    assert work is not None
    work.wait()
    return total * 2


@case(lambda rank: PARTS[0] + PARTS[3] if rank in (0, 3) else PARTS[1] + PARTS[2])
def within_groups_of_the_users(x: Tensor, rank: int, group: ProcessGroup) -> object:
    outer, inner = dist.new_group([0, 3]), dist.new_group([1, 2])
    total = x.clone()
    dist.all_reduce(total, group=outer if rank in (0, 3) else inner)
    return total


@case(lambda rank: PARTS[rank] * 2)
def within_groups_of_one(x: Tensor, rank: int, group: ProcessGroup) -> object:
    alone = [dist.new_group([member]) for member in range(4)]
    total = x.clone()
    dist.all_reduce(total, group=alone[rank])
    return total * 2


@case(lambda rank: TOTAL, GRID)
def within_no_group(x: Tensor, rank: int, group: ProcessGroup) -> object:
    total = x.clone()
    dist.all_reduce(total)
    return total


@case(lambda rank: torch.cat([part[rank : rank + 1] for part in PARTS]))
def learning_exchange(x: Tensor, rank: int, group: ProcessGroup) -> object:
    return learning.all_to_all_single(torch.empty_like(x), x, group=group)


@case(lambda rank: WHOLE if rank == 1 else PARTS[rank])
def learning_gather(x: Tensor, rank: int, group: ProcessGroup) -> object:
    pieces = learning.gather(x.clone(), 1, group=group)
    return torch.cat(list(pieces)) if rank == 1 else x


def of(program: Program, mesh: Mesh) -> Graph:
    def build(rank: int, groups: Mapping[str, ProcessGroup]) -> object:
        def run(x: Tensor) -> object:
            return program(x, rank, groups["tp"])

        return run, (PARTS[rank].clone(),)

    return captured(build, name="program", mesh=mesh)


@pytest.mark.parametrize("name", CASES)
def test_every_rank_has_what_it_should(name: str) -> None:
    program, wanted, mesh = CASES[name]
    graph = of(program, mesh)
    check(graph)
    label = str(graph.inputs()[0].attrs["name"])

    assert opaque_targets(graph) == []
    if graph.unrolled:
        given = {ranked(label.partition("@")[0], rank): PARTS[rank].numpy() for rank in range(4)}
        found = evaluate(graph, given)
        values = [found[ranked("output_0", rank)][0] for rank in range(4)]
    else:
        values = evaluate(graph, {label: list(PARTS.numpy())})["output_0"]
    for rank, value in enumerate(values):
        np.testing.assert_allclose(value, wanted(rank).numpy())


@pytest.mark.parametrize("program", [permuted, swapped_within_groups, passed_on_in_place])
def test_one_part_for_each_is_one_permutation(program: Program) -> None:
    graph = of(program, CASES[program.__name__][2])

    assert [node.op for node in graph.nodes if node.op != "reshape"] == ["input", "permute"]


def refusal(program: Program) -> str:
    with pytest.raises(CaptureFailed) as error:
        of(program, LINE)
    return str(error.value)


def test_what_cannot_be_said_names_the_users_line() -> None:
    def three_of_four(x: Tensor, rank: int, group: ProcessGroup) -> object:
        some = dist.new_group([0, 1, 2])
        total = x.clone()
        if rank < 3:
            dist.all_reduce(total, group=some)
        return total

    def weighted(x: Tensor, rank: int, group: ProcessGroup) -> object:
        total = x.clone()
        half: Any = dist._make_nccl_premul_sum(0.5)  # pyright: ignore[reportPrivateUsage]
        dist.all_reduce(total, op=half, group=group)
        return total

    def differently(x: Tensor, rank: int, group: ProcessGroup) -> object:
        return x + 1 if rank == 0 else x

    where = __file__.rpartition("/")[2]
    assert "ranks 0, 1, 2, which with groups like it does not cut up all ranks" in refusal(three_of_four)
    assert "reduces by a kind that is not modelled" in refusal(weighted)
    assert "rank 0 alone runs" in refusal(differently)
    assert all(where in refusal(program) for program in (three_of_four, weighted, differently))
