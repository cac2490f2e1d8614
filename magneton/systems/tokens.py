"""A workload's token ids as tensors, made once so that no step has to cut them up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from magneton.errors import MagnetonError
from magneton.models.tokens import first_differing
from magneton.workload import Continuation


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTensors:
    """``prompt`` [batch, prompt_tokens], and what each decode step is fed, [batch, 1] each."""

    prompt: Tensor
    decode: tuple[Tensor, ...]

    def named(self) -> Mapping[str, Tensor]:
        return {"prompt": self.prompt, **{f"decode.{i}": ids for i, ids in enumerate(self.decode)}}


def token_tensors(prompt: Tensor, continuation: Continuation) -> TokenTensors:
    decode = (torch.tensor(row, device=prompt.device).unsqueeze(1) for row in continuation)
    return TokenTensors(prompt=prompt, decode=tuple(decode))


def greedy_continuation(logits: Tensor, forward: Callable[[Tensor, int], Tensor], steps: int) -> Continuation:
    """The likeliest tokens. ``logits`` [batch, positions, vocab] are those of the prompts; ``forward`` takes
    ids [batch, 1] and the number of the step, and gives the next logits."""
    fed: list[tuple[int, ...]] = []
    for step in range(steps):
        ids = logits[:, -1:].argmax(-1)
        fed.append(tuple(ids[:, 0].tolist()))
        if step + 1 < steps:
            logits = forward(ids, step)
    return tuple(fed)


def settle(
    generate: Callable[[], Continuation], given: Continuation | None, forced: Sequence[dict[int, int]]
) -> Continuation:
    """Let an engine that chooses tokens itself generate until its decode steps are fed what is ``given``.

    ``forced`` says for each prompt which token the engine must take at which step, and grows here where it
    chooses another one; ``generate`` obeys it. Returns what the steps are fed in the end.
    """
    while True:
        chosen = generate()
        amiss = tuple(first_differing(chosen, chosen if given is None else given))
        if not amiss:
            return chosen
        for row, step, token in amiss:
            if step in forced[row]:
                raise MagnetonError(
                    f"the engine does not take the token {token} that it is given at decode step {step}",
                    hint="record this system first: the other side is then given its tokens",
                )
            forced[row][step] = token
