"""Collectives that write to what they are given, said with those that do not.

The operators below ``torch.distributed``: ``dist.all_reduce(x)`` arrives here as ``c10d.allreduce_``. Each
answers what PyTorch's does, its handle for waiting included; nothing is waited for, values have no time.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import FakeWork
from torch.distributed import ProcessGroup
from torch.export import ExportedProgram

from scalify.errors import CaptureFailed

# Operators that PyTorch's own functional collectives are made of: with the name of the group.
_functional: Any = torch.ops._c10d_functional  # pyright: ignore[reportPrivateUsage]

# As torch::distributed::c10d::ReduceOp numbers them.
_REDUCTIONS = ("sum", "avg", "product", "min", "max")


def _name(group: Any) -> str:
    return ProcessGroup.unbox(group).group_name


def _size(group: Any) -> int:
    return ProcessGroup.unbox(group).size()


def _reduction(kind: Any) -> str:
    number = int(kind.op())
    if number >= len(_REDUCTIONS):
        raise CaptureFailed(
            f"a collective reduces by a kind that is not modelled (ReduceOp number {number})",
            hint="use a sum, mean, product, minimum or maximum; scale before or after it",
        )
    return _REDUCTIONS[number]


def _work() -> Any:
    return FakeWork().boxed()


def _waited(made: Tensor) -> Tensor:
    return _functional.wait_tensor(made)


def _all_reduce(tensors: Sequence[Tensor], group: Any, kind: Any, *_: Any) -> object:
    for tensor in tensors:
        tensor.copy_(_waited(_functional.all_reduce(tensor, _reduction(kind), _name(group))))
    return tensors, _work()


def _all_reduce_coalesced(tensors: Sequence[Tensor], group: Any, kind: Any, *_: Any) -> object:
    _all_reduce(tensors, group, kind)
    return _work()


def _reduce(tensors: Sequence[Tensor], group: Any, kind: Any, root: int, *_: Any) -> object:
    """On all ranks but the root PyTorch leaves undefined what is in the tensor afterwards."""
    is_root = ProcessGroup.unbox(group).rank() == root
    for tensor in tensors:
        total = _waited(_functional.all_reduce(tensor, _reduction(kind), _name(group)))
        tensor.copy_(total if is_root else torch.empty_like(tensor))
    return _work()


def _broadcast(tensors: Sequence[Tensor], group: Any, root: int, *_: Any) -> object:
    for tensor in tensors:
        tensor.copy_(_waited(_functional.broadcast(tensor, root, _name(group))))
    return tensors, _work()


def _gathered(x: Tensor, group: Any) -> Tensor:
    return _waited(_functional.all_gather_into_tensor(x.contiguous(), _size(group), _name(group)))


def _all_gather_into(result: Tensor, x: Tensor, group: Any, *_: Any) -> object:
    result.copy_(_gathered(x, group).view(result.shape))
    return result, _work()


def _all_gather_into_many(results: Sequence[Tensor], xs: Sequence[Tensor], group: Any, *_: Any) -> object:
    for result, x in zip(results, xs, strict=True):
        _all_gather_into(result, x, group)
    return _work()


def _all_gather(results: Sequence[Sequence[Tensor]], xs: Sequence[Tensor], group: Any, *_: Any) -> object:
    for pieces, x in zip(results, xs, strict=True):
        whole = _gathered(x.reshape(1, *x.shape), group)
        for number, piece in enumerate(pieces):
            piece.copy_(whole[number])
    return results, _work()


def _gather(
    results: Sequence[Sequence[Tensor]], xs: Sequence[Tensor], group: Any, root: int, *_: Any
) -> object:
    """All take part; the root alone has anywhere to put the pieces."""
    is_root = ProcessGroup.unbox(group).rank() == root
    for number, x in enumerate(xs):
        whole = _gathered(x.reshape(1, *x.shape), group)
        for place, piece in enumerate(results[number] if is_root else ()):
            piece.copy_(whole[place])
    return _work()


def _scatter(
    results: Sequence[Tensor], xs: Sequence[Sequence[Tensor]], group: Any, root: int, *_: Any
) -> object:
    """What the others bring to it does not matter."""
    rank = ProcessGroup.unbox(group).rank()
    for number, result in enumerate(results):
        given = (
            torch.stack(list(xs[number])) if rank == root else result.new_zeros((_size(group), *result.shape))
        )
        result.copy_(_waited(_functional.broadcast(given, root, _name(group)))[rank])
    return results, _work()


def _scattered(x: Tensor, group: Any, kind: Any) -> Tensor:
    size, name = _size(group), _name(group)
    return _waited(_functional.reduce_scatter_tensor(x.contiguous(), _reduction(kind), size, name))


def _reduce_scatter_from(result: Tensor, x: Tensor, group: Any, kind: Any, *_: Any) -> object:
    result.copy_(_scattered(x, group, kind).view(result.shape))
    return result, _work()


def _reduce_scatter_from_many(
    results: Sequence[Tensor], xs: Sequence[Tensor], group: Any, kind: Any, *_: Any
) -> object:
    for result, x in zip(results, xs, strict=True):
        _reduce_scatter_from(result, x, group, kind)
    return _work()


def _reduce_scatter(
    results: Sequence[Tensor], xs: Sequence[Sequence[Tensor]], group: Any, kind: Any, *_: Any
) -> object:
    for result, pieces in zip(results, xs, strict=True):
        result.copy_(_scattered(torch.stack(list(pieces)), group, kind).view(result.shape))
    return results, _work()


def _exchanged(x: Tensor, taken: Sequence[int], given: Sequence[int], group: Any) -> Tensor:
    return _waited(_functional.all_to_all_single(x.contiguous(), list(taken), list(given), _name(group)))


def _all_to_all_single(
    result: Tensor, x: Tensor, group: Any, taken: Sequence[int], given: Sequence[int], *_: Any
) -> object:
    """No sizes stated means equal parts."""
    count = _size(group)
    taken = taken or [result.shape[0] // count] * count
    given = given or [x.shape[0] // count] * count
    result.copy_(_exchanged(x, taken, given, group))
    return _work()


def _all_to_all(results: Sequence[Tensor], xs: Sequence[Tensor], group: Any, *_: Any) -> object:
    """Pieces of one size travel as one tensor."""
    if len({tuple(tensor.shape) for tensor in (*results, *xs)}) != 1:
        raise CaptureFailed("an all-to-all exchanges pieces of several shapes", hint="pad them to one shape")
    ones = [1] * len(xs)
    whole = _exchanged(torch.stack(list(xs)), ones, ones, group)
    for number, result in enumerate(results):
        result.copy_(whole[number])
    return results, _work()


def _send(tensors: Sequence[Tensor], group: Any, target: int, tag: int) -> object:
    """The peer is counted within the group; the operator wants its number among all."""
    peer = dist.get_global_rank(ProcessGroup.unbox(group), target)
    for tensor in tensors:
        _functional.isend(tensor, peer, tag, _name(group))
    return _work()


def _receive(tensors: Sequence[Tensor], group: Any, source: int, tag: int) -> object:
    peer = dist.get_global_rank(ProcessGroup.unbox(group), source)
    for tensor in tensors:
        tensor.copy_(_functional.irecv(tensor, peer, tag, _name(group)))
    return _work()


def _barrier(*_: Any) -> object:
    return _work()


_MESSAGES = frozenset(f"_c10d_functional.{name}.default" for name in ("isend", "irecv", "batch_p2p_ops"))

IN_PLACE: Mapping[str, Callable[..., object]] = MappingProxyType({
    "c10d.allreduce_.default": _all_reduce,
    "c10d.allreduce_coalesced_.default": _all_reduce_coalesced,
    "c10d.reduce_.default": _reduce,
    "c10d.broadcast_.default": _broadcast,
    "c10d._allgather_base_.default": _all_gather_into,
    "c10d.allgather_into_tensor_coalesced_.default": _all_gather_into_many,
    "c10d.allgather_.default": _all_gather,
    "c10d.gather_.default": _gather,
    "c10d.scatter_.default": _scatter,
    "c10d._reduce_scatter_base_.default": _reduce_scatter_from,
    "c10d.reduce_scatter_tensor_coalesced_.default": _reduce_scatter_from_many,
    "c10d.reduce_scatter_.default": _reduce_scatter,
    "c10d.alltoall_base_.default": _all_to_all_single,
    "c10d.alltoall_.default": _all_to_all,
    "c10d.send.default": _send,
    "c10d.recv_.default": _receive,
    "c10d.barrier.default": _barrier,
    "c10d.monitored_barrier_.default": _barrier,
})  # fmt: skip


def meets_in_place(exported: ExportedProgram) -> bool:
    """Whether ranks meet in operators that write to their arguments, or in messages.

    PyTorch records of the latter as functional what writes to the tensor that it is given.
    """
    targets = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    return any(target in IN_PLACE or target in _MESSAGES for target in targets)
