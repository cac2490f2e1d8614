"""What is run: the same inputs, in the same phases, on either side."""

from dataclasses import dataclass
from typing import Literal

DType = Literal["float32", "bfloat16", "float16"]
Phase = str

PREFILL: Phase = "prefill"
DECODE: Phase = "decode"
CALL: Phase = "call"  # the one phase of a user's callable

GradMode = Literal["inference", "no_grad", "grad"]
Continuation = tuple[tuple[int, ...], ...]  # what decode steps are fed, [decode_steps][batch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One generation: a prefill of ``batch`` prompts, then ``decode_steps`` tokens each.

    A *step* of phase prefill is one forward over all prompts. A step of phase decode is
    ``decode_steps`` consecutive forwards of one token per prompt, starting from the cache that the
    prefill left; every repetition starts from that same cache. Prompts are drawn from ``seed``. What decode
    steps are fed is the likeliest token of the side that is loaded first, and given to the other side: both
    do the same work even where two logits tie. A user's callable has the one phase
    ``call``, whose step is one call, and uses ``seed`` only.
    """

    phases: tuple[Phase, ...] = (PREFILL, DECODE)
    batch: int = 1
    prompt_tokens: int = 64
    decode_steps: int = 4
    dtype: DType = "float32"
    seed: int = 0
