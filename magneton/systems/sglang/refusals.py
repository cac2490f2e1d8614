"""What SGLang says when it refuses a model, an option or a workload."""

import re

from magneton.systems.refusals import NO_TOKENIZER, Refusal

REFUSALS = (
    Refusal(
        pattern=NO_TOKENIZER,
        hint="the model's folder has no tokenizer that it can load: with sglang:skip_tokenizer_init=true it"
        " needs none",
    ),
    Refusal(
        pattern=re.compile(r"Model architectures? .* not supported|not supported for now"),
        hint="SGLang does not run this architecture: choose another model, or another system",
    ),
    Refusal(
        pattern=re.compile(
            r"attention[ _]backend|[Uu]nknown quantization|kv[ _]cache[ _]dtype|page[ _]size|[Qq]uantization"
        ),
        hint="what its options take: magneton systems show sglang",
    ),
)
