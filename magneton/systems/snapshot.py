"""Tensors as they were before a step, put back at little cost after it."""

from collections.abc import Iterable

import torch
from torch import Tensor


class Snapshot:
    """Copies of tensors, and which of them a step overwrites.

    The first time all are compared with their copies; after that only those that differed then, or whose
    count of writes has grown, are copied back. The count alone does not do: batch norm writes its
    running statistics without counting.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        distinct = {id(tensor): tensor for tensor in tensors}
        self._kept = tuple((tensor, tensor.detach().clone()) for tensor in distinct.values())
        self._writes = [_writes(tensor) for tensor, _ in self._kept]
        self._overwritten: set[int] | None = None

    def restore(self) -> None:
        """To be called after a step."""
        if self._overwritten is None:
            self._overwritten = {
                index for index, (tensor, copy) in enumerate(self._kept) if not torch.equal(tensor, copy)
            }
        for index, (tensor, copy) in enumerate(self._kept):
            if index in self._overwritten or _writes(tensor) != self._writes[index]:
                tensor.detach().copy_(copy)
                self._writes[index] = _writes(tensor)


def _writes(tensor: Tensor) -> int:
    """How often ``tensor`` was written; PyTorch does not count it for those made in inference mode."""
    return 0 if tensor.is_inference() else tensor._version
