"""Token ids: prompts that are the same in every interpreter, and what follows them.

Prompts are drawn from the workload's seed. What decode steps are fed is the likeliest token of one side,
and given to the other.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from magneton.errors import MagnetonError
from magneton.models.tokenizer import SPECIAL
from magneton.workload import Continuation, Workload


def prompt_ids(workload: Workload, vocab_size: int) -> NDArray[np.int64]:
    """The prompts, [batch, prompt_tokens].

    No special token occurs, and no two rows of the batch are alike. The ids come from raw PCG64 bits: the
    two sides may run different versions of NumPy, and only that stream is the same in all of them.
    """
    first = len(SPECIAL) if vocab_size > len(SPECIAL) + workload.batch else 0
    usable = vocab_size - first
    if workload.batch > usable:
        raise MagnetonError(
            f"a batch of {workload.batch} different prompts needs more than {vocab_size} tokens",
            hint="lower the batch",
        )
    shape = (workload.batch, workload.prompt_tokens)
    raw = np.random.PCG64(workload.seed).random_raw(shape[0] * shape[1]).reshape(shape)
    tokens = (raw % np.uint64(usable)).astype(np.int64)
    tokens[:, 0] = (tokens[0, 0] + np.arange(workload.batch)) % usable  # tells the rows apart
    return tokens + first


def check_continuation(given: Continuation, workload: Workload, vocab_size: int) -> None:
    """Refuse tokens that are not the workload's, or not the model's: they may come from a file."""
    ids = [token for row in given for token in row]
    well_formed = len(given) == workload.decode_steps and all(len(row) == workload.batch for row in given)
    if not well_formed or not all(0 <= token < vocab_size for token in ids):
        raise MagnetonError(
            f"the tokens that the other side decoded do not fit {workload.decode_steps} steps of"
            f" {workload.batch} prompts and a vocabulary of {vocab_size}",
            hint="record the other side again, with the same model and workload",
        )


def first_differing(chosen: Continuation, wanted: Continuation) -> Iterator[tuple[int, int, int]]:
    """For each row of the batch that is fed otherwise than wanted: row, first such step, wanted token."""
    for row in range(len(wanted[0]) if wanted else 0):
        for step, (is_fed, should_be) in enumerate(zip(chosen, wanted, strict=True)):
            if is_fed[row] != should_be[row]:
                yield row, step, should_be[row]
                break
