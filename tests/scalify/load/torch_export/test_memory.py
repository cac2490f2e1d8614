"""Writes in place: seen through every view of the memory, or opaque, never lost."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_graphs import (
    Applied,
    Cases,
    assert_translates,
    expected,
    opaque_targets,
    reals,
    through_file,
    through_memory,
    values,
)

from scalify.ir.evaluate import evaluate

CASES = Cases()


@CASES.add(reals(3, 4))
def a_write_is_seen_by_the_name_it_was_given(x: Tensor) -> object:
    y = x * 1
    z = y.add_(2)
    return y, z, z * 2


@CASES.add(reals(4, 4))
def a_slice_writes_to_what_it_is_a_slice_of(x: Tensor) -> object:
    y = x.clone()
    y[1:3] += 1
    y[:, 0] = 7.0
    y[2].mul_(3)
    return y, y.sum()


@CASES.add(reals(4, 4))
def a_view_sees_what_is_written_to_its_base(x: Tensor) -> object:
    y = x.clone()
    row, column = y[1], y[:, 2]
    y.mul_(2)
    y[1, 2] = 5
    return row, column


@CASES.add(reals(2, 6))
def views_of_views_see_each_others_writes(x: Tensor) -> object:
    y = x.clone()
    left, right = y.t().split(3)
    left.transpose(0, 1)[1].add_(1)
    right.zero_()
    return y, left, right


@CASES.add(reals(3, 4), torch.tensor([2, 0]), reals(2, 4))
def indices_write_in_place(x: Tensor, index: Tensor, v: Tensor) -> object:
    y = x.clone()
    y[index] = v
    y.index_add_(0, index, v)
    y.masked_fill_(y > 1, 0.5)
    y.clamp_(-1, 1)
    return y


@CASES.add(reals(3, 4))
def a_buffer_made_empty_is_what_was_written_to_it(x: Tensor) -> object:
    y = torch.empty_like(x)
    y.copy_(x[:1])
    return y


@CASES.add(reals(3, 4))
def a_reshape_of_a_whole_tensor_is_a_view(x: Tensor) -> object:
    y = x.clone()
    y.reshape(12).add_(1)
    y.contiguous().mul_(2)
    y.to(torch.float64).sub_(1)
    return y


@CASES.add(reals(3, 4), reals(7, 5))
def writes_with_gaps_leave_what_is_between(x: Tensor, y: Tensor) -> object:
    x, y = x.clone(), y.clone()
    x[:, ::2].add_(1)
    y[1::3, ::2] = y[:2, :3] * 2
    y[::4].mul_(3)
    y.t()[1::2].zero_()
    return x, y


@CASES.add(reals(4, 4))
def the_diagonal_is_a_view(x: Tensor) -> object:
    y = x.clone()
    y.diagonal().mul_(2)
    y.fill_diagonal_(0.5)
    return y


@CASES.add(reals(3, 4))
def what_is_read_is_read_before_it_is_written(x: Tensor) -> object:
    y, z = x.clone(), x.clone()
    y.add_(y.flip(0))
    z[1:] = z[:-1].clone()
    z.copy_(z.flip(1) * z)
    z[:, 1:].sub_(z[:, :1])
    return y, z


@CASES.add(torch.arange(6.0), torch.tensor([1, 2, 3]))
def indices_put_what_was_there_before(x: Tensor, index: Tensor) -> object:
    y = x.clone()
    y.index_put_((index,), y[index - 1])
    y.index_put_((index - 1,), y[index] * 2, accumulate=True)
    y.scatter_(0, index, y[:3] + 1)
    y.index_copy_(0, index, y[2:5].clone())
    return y


@CASES.add(reals(2, 2, 3), reals(2, 1, 3))
def a_cache_is_written_and_read_in_turns(cache: Tensor, x: Tensor) -> object:
    kept = cache.clone()
    found = []
    for place in range(2):
        kept[:, place : place + 1] = x * (place + 1)
        found.append((kept * kept[:, :1]).sum(-1))
    kept.narrow(1, 0, 1).copy_(found[0][:, :1, None].expand(2, 1, 3))
    return torch.stack(found), kept


@CASES.add(reals(4))
def numbers_written_one_by_one_in_a_loop(x: Tensor) -> object:
    y = x.clone()
    for place in range(3):
        y[place + 1] = y[place] + x[place]
    for place in range(4):
        y[3 - place] = y[place]
    return y


@CASES.add(reals(3, 4))
def a_copy_is_not_written_to(x: Tensor) -> object:
    y = x.clone()
    kept = (y.t().contiguous(), y.to(torch.float32), y.clone())
    y.zero_()
    return *kept, y


@CASES.add(reals(2, 3))
def without_gradients_is_inlined(x: Tensor) -> object:
    with torch.no_grad():
        y = x * 2
        y.add_(1)
    return y + x


@pytest.mark.parametrize("name", CASES.names)
def test_in_place_operators_mean_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)


class Cache(nn.Module):
    """Appends to a buffer, as a KV cache does."""

    cache: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.arange(12, dtype=torch.float64).reshape(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.cache[:, 1:3] = x
        return self.cache.sum(1)


def test_a_written_buffer_is_an_output_that_takes_its_place(tmp_path: Path) -> None:
    args = [reals(3, 2)]
    graph = through_file(Cache(), args, tmp_path)

    cache = next(output for output in graph.outputs if output.alias == "cache")
    before = Cache().cache.numpy()
    found = evaluate(graph, {"cache": before, "x": args[0].numpy()})
    module = Cache()
    wanted = expected(module, args)
    assert (found[cache.name][0] == module.cache.numpy()).all()
    assert (found["output_0"][0] == wanted[0]).all()


def a_write_to_what_may_be_a_copy(x: Tensor) -> object:
    y = x.clone().t()
    flat = y.reshape(12)
    flat.add_(1)
    return y, flat


def test_a_write_to_a_copy_that_might_be_a_view_is_not_guessed(tmp_path: Path) -> None:
    graph = through_file(Applied(a_write_to_what_may_be_a_copy), [reals(3, 4)], tmp_path)

    assert len(opaque_targets(graph)) == 2


def test_a_read_before_the_write_keeps_its_value(tmp_path: Path) -> None:
    def program(x: Tensor) -> object:
        y = x.clone()
        before = y * 1
        y.add_(1)
        return before, y

    args = [reals(2, 2)]
    graph = through_file(Applied(program), args, tmp_path)

    assert (values(graph, None, args)[0] == args[0].numpy()).all()


def written_once(x: Tensor) -> object:
    y = x.clone().t()
    y.reshape(12).add_(1)
    return y


def written_twice(x: Tensor) -> object:
    y = x.clone().t()
    y.reshape(12).mul_(2)
    y.reshape(12).add_(1)
    return y


def test_no_write_is_forgotten_where_none_can_be_followed() -> None:
    once, twice = (
        through_memory(Applied(function), [reals(3, 4)]) for function in (written_once, written_twice)
    )

    assert len(opaque_targets(once)) == 1
    assert len(opaque_targets(twice)) == 2


def test_a_write_through_a_view_without_a_meaning_reaches_the_base() -> None:
    def program(x: Tensor) -> object:
        y = x.clone()
        y.as_strided((2,), (2,)).zero_()
        return y

    graph = through_memory(Applied(program), [reals(4)])

    assert graph.by_id()[graph.outputs[0].value].op == "opaque"


def test_two_draws_are_two_values() -> None:
    def program(x: Tensor) -> object:
        return torch.rand_like(x), torch.rand_like(x), nn.functional.dropout(x), nn.functional.dropout(x)

    graph = through_memory(Applied(program), [reals(4)])

    keys = [node.attrs["key"] for node in graph.nodes if node.op == "random"]
    assert len(set(keys)) == 4


def test_memory_of_which_something_is_read_before_it_is_written_is_unknown() -> None:
    def program(x: Tensor) -> object:
        written, read, other = torch.empty_like(x), torch.empty(2, 2), x.new_empty(2, 2)
        written.copy_(x)
        read[0] = x[0]
        return written, read, other, other + read

    graph = through_memory(Applied(program), [reals(2, 2)])

    unknown = [node for node in graph.nodes if node.op == "opaque"]
    assert [node.attrs["target"] for node in unknown] == ["uninitialised"] * 2
    assert len({node.attrs["config"] for node in unknown}) == 2


def test_draws_within_two_blocks_are_two_values() -> None:
    def program(x: Tensor) -> object:
        with torch.no_grad():
            first = torch.rand_like(x)
        with torch.no_grad():
            second = torch.rand_like(x)
        return first, second

    graph = through_memory(Applied(program), [reals(4)])

    keys = [node.attrs["key"] for node in graph.nodes if node.op == "random"]
    assert len(set(keys)) == 2
