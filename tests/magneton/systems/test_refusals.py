"""What engines really said, shortened nowhere that matters, and what becomes of it."""

import pytest

from magneton.errors import MagnetonError
from magneton.systems.refusals import Refusal, refusals
from magneton.systems.sglang.refusals import REFUSALS as SGLANG
from magneton.systems.vllm.refusals import REFUSALS as VLLM

NO_TOKENIZER = (
    "Couldn't instantiate the backend tokenizer from one of: \n(1) a `tokenizers` library serialization file,"
    " \n(2) a slow tokenizer instance to convert or \n(3) an equivalent slow tokenizer class to instantiate"
    " and convert. \nYou need to have sentencepiece or tiktoken installed to convert a slow tokenizer to a"
    " fast one."
)
UNKNOWN_BACKEND = (
    "1 validation error for AttentionConfig\nbackend\n  Value error, Unknown attention backend: 'NONSENSE'."
    " Valid options are: FLASH_ATTN. [type=value_error, input_value='nonsense', input_type=str]\n"
    "    For further information visit https://errors.pydantic.dev/2.14/v/value_error"
)
UNKNOWN_QUANTIZATION = (
    "1 validation error for ModelConfig\n  Value error, Unknown quantization method: nonsense. Must be one of"
    " ['awq']. [type=value_error, input_value=ArgsKwargs((), {'model': ...}), input_type=ArgsKwargs]\n"
    "    For further information visit https://errors.pydantic.dev/2.14/v/value_error"
)


class ValidationError(ValueError):
    """Called as pydantic's is."""


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (ValueError(NO_TOKENIZER), "Couldn't instantiate the backend tokenizer from one", "detokenize=false"),
        (
            RuntimeError("Unsupported CPU attention configuration: head_dim=20 isa=1 kv_cache_idx=0"),
            "Unsupported CPU attention configuration: head_dim=20",
            "some sizes of heads only",
        ),
        (
            ValidationError(UNKNOWN_BACKEND),
            "backend Unknown attention backend: 'NONSENSE'. Valid options are: FLASH_ATTN.",
            "magneton systems show vllm",
        ),
        (
            ValidationError(UNKNOWN_QUANTIZATION),
            "Unknown quantization method: nonsense. Must be one of ['awq'].",
            "magneton systems show vllm",
        ),
        (
            ValueError("No common block size for 7 (CPU_ATTN: [MultipleOf(32)])."),
            "No common block size for 7",
            "magneton systems show vllm",
        ),
    ],
)
def test_what_vllm_refuses_is_the_users_to_mend(error: Exception, message: str, hint: str):
    with pytest.raises(MagnetonError) as caught, refusals("vLLM", VLLM):
        raise error
    assert str(caught.value).startswith(f"vLLM refuses this: {message}")
    assert hint in caught.value.hint
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (ValueError(NO_TOKENIZER), "Couldn't instantiate the backend tokenizer", "skip_tokenizer_init=true"),
        (
            ValueError("Invalid attention backend: nonsense"),
            "Invalid attention backend: nonsense",
            "magneton systems show sglang",
        ),
        (
            ValueError("Unknown quantization method: nonsense. Must be one of ['fp8']."),
            "Unknown quantization method",
            "magneton systems show sglang",
        ),
    ],
)
def test_what_sglang_refuses_is_the_users_to_mend(error: Exception, message: str, hint: str):
    with pytest.raises(MagnetonError) as caught, refusals("SGLang", SGLANG):
        raise error
    assert str(caught.value).startswith(f"SGLang refuses this: {message}")
    assert hint in caught.value.hint


@pytest.mark.parametrize("known", [VLLM, SGLANG], ids=["vllm", "sglang"])
@pytest.mark.parametrize(
    "error",
    [
        KeyError("model.layers.0.weight"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        MemoryError(),
        AttributeError("'NoneType' object has no attribute 'tolist'"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_not_known_stays_what_it_is(known: tuple[Refusal, ...], error: Exception):
    with pytest.raises(type(error)) as caught, refusals("it", known):
        raise error
    assert caught.value is error


def test_our_own_errors_pass_unchanged():
    error = MagnetonError("no tokenizer: attention backend", hint="as it was")
    with pytest.raises(MagnetonError) as caught, refusals("vLLM", VLLM):
        raise error
    assert caught.value is error


def test_a_long_refusal_is_cut_between_words():
    with pytest.raises(MagnetonError) as caught, refusals("vLLM", VLLM):
        raise ValueError(f"Unknown attention backend: {'valid ' * 200}")
    assert str(caught.value).endswith("valid ...")
    assert len(str(caught.value)) < 450
