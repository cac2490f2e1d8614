"""A workload's token ids as tensors, made once so that no step has to cut them up."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from magneton.models.tokens import token_ids
from magneton.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTensors:
    """``prompt`` [batch, prompt_tokens], and what each decode step is fed, [batch, 1] each."""

    prompt: Tensor
    decode: tuple[Tensor, ...]

    def named(self) -> Mapping[str, Tensor]:
        return {"prompt": self.prompt, **{f"decode.{i}": ids for i, ids in enumerate(self.decode)}}


def token_tensors(workload: Workload, vocab_size: int, device: str) -> TokenTensors:
    prompt, decode = token_ids(workload, vocab_size)
    return TokenTensors(
        prompt=torch.tensor(prompt, device=device),
        decode=tuple(torch.tensor(row, device=device).unsqueeze(1) for row in decode),
    )
