"""Token ids: given, not generated, and the same in every interpreter that runs the workload."""

import numpy as np
from numpy.typing import NDArray

from magneton.errors import MagnetonError
from magneton.models.tokenizer import SPECIAL
from magneton.workload import Workload


def token_ids(workload: Workload, vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The prompts [batch, prompt_tokens] and the tokens fed while decoding [decode_steps, batch].

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
    shape = (workload.batch, workload.prompt_tokens + workload.decode_steps)
    raw = np.random.PCG64(workload.seed).random_raw(shape[0] * shape[1]).reshape(shape)
    tokens = (raw % np.uint64(usable)).astype(np.int64)
    tokens[:, 0] = (tokens[0, 0] + np.arange(workload.batch)) % usable  # tells the rows apart
    tokens += first
    prompt = np.ascontiguousarray(tokens[:, : workload.prompt_tokens])
    decode = np.ascontiguousarray(tokens[:, workload.prompt_tokens :].T)
    return prompt, decode
