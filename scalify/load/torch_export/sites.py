"""Where a call stands in the user's source and in their model, from the text PyTorch keeps.

``stack_trace`` is a traceback's text, outermost call first; ``nn_module_stack`` lists the modules around
the call. Frames of torch itself say nothing about a model and are left out; frames of other libraries
stay, for a model's code often is a library's.
"""

import re
from functools import lru_cache

from scalify.ir.graph import Site

_FRAME = re.compile(r'^\s*File "([^"\n]{1,4096})", line (\d{1,9}), in (.{1,512})$', re.MULTILINE)
_TORCH = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]torch[/\\]|^<|[/\\]torch[/\\]nn[/\\]modules[/\\]"
    r"|[/\\](?:typing_extensions|contextlib|functools|warnings)\.py$"  # What decorators put in between.
)
_DEEPEST_STACK = 200


@lru_cache(maxsize=20_000)
def frames(trace: str) -> tuple[Site, ...]:
    """The user's frames, outermost first."""
    found = _FRAME.findall(trace)[-_DEEPEST_STACK:]
    return tuple(
        Site(file=file, line=int(line), function=function) for file, line, function in found if is_users(file)
    )


@lru_cache(maxsize=20_000)
def is_users(file: str) -> bool:
    """Whether a frame of this file is not PyTorch's own."""
    return _TORCH.search(file) is None


@lru_cache(maxsize=20_000)
def scope(modules: str) -> str:
    """The path of the innermost module: the second field of the last ``key,path,class`` triple."""
    innermost = modules.rsplit(";", 1)[-1].split(",")
    return innermost[1] if len(innermost) >= 3 else ""
