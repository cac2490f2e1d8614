"""How a worker ended that had not answered, in words; a bug of ours is raised instead."""

import signal

from scalify.report.quantities import size_text
from scalify.worker.crashed import ProverCrashed
from scalify.worker.protocol import Request

_MEMORY_SIGNALS = (signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS)
_MEMORY_WORDS = ("memoryerror", "memory allocation", "cannot allocate memory", "failed to map segment")


def out_of_time(request: Request) -> str:
    return f"the time limit of {request.duration_s:g} s was reached"


def out_of_memory(request: Request) -> str:
    return f"the memory limit of {size_text(request.memory_bytes)} was reached"


def ending(request: Request, status: int, words: str) -> str:
    """``status`` is that of ``subprocess``, ``words`` the end of what it printed."""
    if any(each in words.lower() for each in _MEMORY_WORDS):
        return out_of_memory(request)
    if status == -signal.SIGXCPU:
        return out_of_time(request)
    if -status in _MEMORY_SIGNALS:
        name = signal.Signals(-status).name
        return f"the prover was ended by {name}, most likely for want of memory"
    if status < 0:
        return f"the prover was ended by signal {-status}"
    raise ProverCrashed(f"the prover left with status {status} and no answer:\n{words}")
