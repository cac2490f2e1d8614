"""Does an operator that is repeated still compute what it computed first?

In: an operator and its arguments, before and after its repetitions. Out: whether the results are the same,
bit for bit. An operator that fails this has state that its schema does not declare, or is not deterministic.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from magneton.record.torch.calls import signature_of, tensors_in

RESULTS_CAP_BYTES = 256 * 2**20  # of results that are kept to be compared


class Results:
    """Executes the operator once, at once. Whoever repeats it puts back what that overwrote."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._func = func
        self._args = args
        self._kwargs = kwargs
        self._first = _kept(func, self._run())

    def differ(self) -> bool:
        """Execute it once more and compare. False where there is nothing to compare."""
        if not self._first:
            return False
        return not all(map(_same, self._first, self._run()))

    def _run(self) -> tuple[Tensor, ...]:
        return tuple(tensors_in(self._func(*self._args, **self._kwargs)))


def _kept(func: Any, results: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Copies; none where content is random, whatever memory held before, or too much."""
    signature = signature_of(func)
    if signature.random or signature.allocates or not all(map(_comparable, results)):
        return ()
    if sum(result.numel() * result.element_size() for result in results) > RESULTS_CAP_BYTES:
        return ()
    return tuple(result.clone() for result in results)


def _comparable(result: Tensor) -> bool:
    """Whether its elements are all there is to it."""
    lazy = result.is_conj() or result.is_neg()
    return result.layout is torch.strided and not result.is_quantized and not lazy


def _same(first: Tensor, last: Tensor) -> bool:
    if first.shape != last.shape or first.dtype != last.dtype:
        return False
    return torch.equal(_bytes(first), _bytes(last))


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)
