"""What ranks send to each other: values arrive where they are received, or it is told that they do not."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup
from torch_graphs import counted, opaque_targets, reals

from scalify.capture import captured
from scalify.errors import CaptureFailed
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.mesh import Mesh

TWO = Mesh(axes=(("pp", 2),))
FOUR = Mesh(axes=(("cp", 4),))
Groups = Mapping[str, ProcessGroup]
TOO = torch.empty(2, 3, dtype=torch.float64, device="meta")


@pytest.mark.parametrize("receives_first", [False, True])
def test_messages_around_a_ring_are_one_permutation(receives_first: bool) -> None:
    def build(rank: int, groups: Groups) -> object:
        def step(x: Tensor) -> Tensor:
            total, given = x, x * 2
            for _ in range(2):
                taken = torch.empty_like(given)
                ends = [
                    dist.P2POp(dist.isend, given, (rank + 1) % 4, groups["cp"]),
                    dist.P2POp(dist.irecv, taken, (rank - 1) % 4, groups["cp"]),
                ]
                for work in dist.batch_isend_irecv(ends[::-1] if receives_first else ends):
                    work.wait()
                given = taken
                total = total + taken
            return total

        return step, (TOO.clone().requires_grad_(),)

    graph = captured(build, name="ring", mesh=FOUR, backward=True)
    check(graph)
    assert counted(graph)["permute"] == 2
    assert opaque_targets(graph) == []

    parts = reals(4, 2, 3)
    label = str(graph.inputs()[0].attrs["name"])
    found = evaluate(graph, {label: list(parts.numpy()), "grad.output_0": np.ones((2, 3))})
    for rank, value in enumerate(found["output_0"]):
        wanted = parts[rank] + 2 * parts[rank - 1] + 2 * parts[rank - 2]
        np.testing.assert_allclose(value, wanted.numpy())


def stages(rank: int, groups: Groups) -> object:
    """Rank 0 doubles and waits for an answer; rank 1 adds one and sends back the square."""

    def first(x: Tensor) -> dict[str, Tensor]:
        answer = torch.empty_like(x)
        received = dist.irecv(answer, src=1, group=groups["pp"])
        dist.send(x * 2, dst=1, group=groups["pp"])
        assert received is not None
        received.wait()
        return {"answer": answer + x}

    def second(y: Tensor) -> dict[str, Tensor]:
        given = torch.empty_like(y)
        dist.recv(given, src=0, group=groups["pp"])
        dist.send((given + y).square(), dst=0, group=groups["pp"])
        return {"given": given}

    return ((first, second)[rank], (TOO.clone(),))


def test_stages_side_by_side_have_each_others_values() -> None:
    graph = captured(stages, name="stages", mesh=TWO)
    check(graph)
    assert graph.unrolled == 2

    x, y = reals(2, 3), reals(2, 3)
    names = [str(node.attrs["name"]) for node in graph.inputs()]
    found = evaluate(graph, {names[0]: x.numpy(), names[1]: y.numpy()})
    np.testing.assert_allclose(found["answer@rank0"][0], ((2 * x + y).square() + x).numpy())
    np.testing.assert_allclose(found["given@rank1"][0], (2 * x).numpy())


def test_a_message_that_nobody_sends_is_told() -> None:
    def build(rank: int, groups: Groups) -> object:
        def step(x: Tensor) -> Tensor:
            taken = torch.empty_like(x)
            dist.recv(taken, src=1 - rank, group=groups["pp"])
            if rank:
                dist.send(x, dst=0, group=groups["pp"])
            return taken

        return step, (TOO.clone().requires_grad_(),)

    with pytest.raises(CaptureFailed, match="waits for rank 0"):
        captured(build, name="stuck", mesh=TWO)


def test_a_message_that_nobody_receives_is_told() -> None:
    def build(rank: int, groups: Groups) -> object:
        def step(x: Tensor) -> Tensor:
            if not rank:
                dist.send(x, dst=1, group=groups["pp"])
                dist.send(x, dst=1, group=groups["pp"])
                return x
            taken = torch.empty_like(x)
            dist.recv(taken, src=0, group=groups["pp"])
            return taken

        return step, (TOO.clone(),)

    with pytest.raises(CaptureFailed, match="does not receive what rank 0 sends"):
        captured(build, name="lost", mesh=TWO)


def test_what_is_received_has_the_type_of_what_is_sent() -> None:
    def build(rank: int, groups: Groups) -> object:
        def step(x: Tensor) -> Tensor:
            if not rank:
                dist.send(x, dst=1, group=groups["pp"])
                return x
            taken = torch.empty_like(x.t())
            dist.recv(taken, src=0, group=groups["pp"])
            return taken

        return step, (TOO.clone(),)

    with pytest.raises(CaptureFailed, match=r"receives f64\[2, 3\] from rank 0, and takes f64\[3, 2\]"):
        captured(build, name="other", mesh=TWO)
