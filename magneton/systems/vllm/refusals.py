"""What vLLM says when it refuses a model, an option or a workload."""

import re

from magneton.systems.refusals import NO_TOKENIZER, Refusal

OPTIONS = "what its options take: magneton systems show vllm"
REFUSALS = (
    Refusal(
        pattern=NO_TOKENIZER,
        hint="the model's folder has no tokenizer that it can load: with vllm:detokenize=false it needs none",
    ),
    Refusal(
        pattern=re.compile(r"head_dim=(\d+)|(?i:head.size (\d+)|head_size[^.]*not supported)"),
        hint="its attention is built for some sizes of heads only: choose another model, or an option"
        " attention_backend that knows this one",
    ),
    Refusal(
        pattern=re.compile(r"Model architectures? .* (?:not|failed)|has no vLLM implementation"),
        hint="vLLM does not run this architecture: choose another model, or another system",
    ),
    Refusal(
        pattern=re.compile(
            r"ValidationError|block size for|[Uu]nknown (?:attention backend|quantization)"
            r"|[Ii]nvalid attention|attention backend|dtype .* not supported|[Qq]uantization"
        ),
        hint=OPTIONS,
    ),
)
