"""Operators of another library, as engines register theirs. Imported once per process."""

import torch
from torch import Tensor

LIBRARY = torch.library.Library("magneton_engine", "DEF")


def attend(query: Tensor, cache: Tensor, out: Tensor) -> None:
    """Writes a cache and a result, with operators of PyTorch's own inside."""
    cache.add_(query)
    out.copy_(torch.softmax(query @ cache.T, dim=-1))


def bare(query: Tensor, out: Tensor) -> None:
    """As a kernel started past the dispatcher: PyTorch sees none of the work."""
    rows = query.detach().numpy() * 2.0
    out.numpy()[:] = rows


def half_bare(query: Tensor, out: Tensor) -> Tensor:
    out.numpy()[:] = query.detach().numpy() * 3.0
    return query + 1.0


def packed_linear(x: Tensor, handle: Tensor, out: Tensor) -> None:
    """Its weight is known by a handle only."""
    out.numpy()[:] = x.detach().numpy() @ PACKED[int(handle)].numpy()


PACKED: list[Tensor] = []

LIBRARY.define("attend(Tensor query, Tensor(a!) cache, Tensor(b!) out) -> ()")
LIBRARY.define("bare(Tensor query, Tensor(a!) out) -> ()")
LIBRARY.define("half_bare(Tensor query, Tensor(a!) out) -> Tensor")
LIBRARY.define("packed_linear(Tensor x, Tensor handle, Tensor(a!) out) -> ()")
LIBRARY.impl("attend", attend, "CPU")
LIBRARY.impl("bare", bare, "CPU")
LIBRARY.impl("half_bare", half_bare, "CPU")
LIBRARY.impl("packed_linear", packed_linear, "CPU")

ops = torch.ops.magneton_engine
