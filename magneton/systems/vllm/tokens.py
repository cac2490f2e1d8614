"""Tokens that are given to vLLM's engine where it would choose others.

Imported only beside vLLM, which loads the class through its own interface for logits processors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

SamplingParams: Any = import_module("vllm").SamplingParams
AdapterLogitsProcessor: Any = import_module("vllm.v1.sample.logits_processor").AdapterLogitsProcessor

GIVEN = "magneton_given"  # of a request's extra arguments: tokens by position


def greedy(tokens: int, given: Mapping[int, int]) -> Any:
    """A request for ``tokens`` tokens, the likeliest each time but for those that are ``given``."""
    extra: dict[str, Any] | None = (
        {GIVEN: {str(position): token for position, token in given.items()}} if given else None
    )
    return SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, extra_args=extra)


class GivenTokens(AdapterLogitsProcessor):
    """Does nothing for a request that is given no token."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: Any) -> "_Given | None":
        given = (params.extra_args or {}).get(GIVEN)
        return _Given({int(position): token for position, token in given.items()}) if given else None


@dataclass(frozen=True, slots=True)
class _Given:
    """Makes the token that is due at a request's position the likeliest by far."""

    tokens: Mapping[int, int]

    def __call__(self, output_ids: Sequence[int], logits: Tensor) -> Tensor:
        token = self.tokens.get(len(output_ids))
        if token is None:
            return logits
        others = torch.full_like(logits, float("-inf"))
        others[token] = 0.0
        return others
