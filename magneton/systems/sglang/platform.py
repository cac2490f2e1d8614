"""SGLang on any CPU: a platform of PyTorch's own operators, through SGLang's door for platforms.

SGLang's kernels for CPUs come in no released package. Its interface for platforms of other makers lets one
choose attention and layers in plain PyTorch instead; nothing of SGLang is changed. Imported only beside it.
"""

from importlib import import_module
from typing import Any

CpuPlatform: Any = import_module("sglang.srt.platforms.cpu").CpuSRTPlatform


def activate() -> str:
    """What SGLang calls to learn of the platform's class."""
    return f"{__name__}.NativeCpuPlatform"


class NativeCpuPlatform(CpuPlatform):
    """SGLang's own for CPUs, but for the kernels."""

    def is_out_of_tree(self) -> bool:
        return True

    def get_default_attention_backend(self) -> str:
        return "torch_native"

    def get_dispatch_key_name(self) -> str:
        return "native"
