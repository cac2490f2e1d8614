"""Operators that are launched more slowly than they run, repeated without launching each by itself.

A loop of launches keeps a board idle between its kernels: what it reads is the launch. CUDA can capture many
executions into one graph, which is launched at once. PyTorch's rules for that (torch.cuda.CUDAGraph): run
before on the stream that captures, memory from a pool of the graph's own, no wait for the device and no draw
of random numbers inside.

A capture that fails may leave PyTorch's generators unusable (pytorch/pytorch#171263). So only operators are
tried of which nothing speaks against it, and after one failure no more.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from magneton.record.torch.calls import Call, inspect_call

SLOWER = 1.5  # an execution takes so much longer than its kernels where launching is what takes time
EXECUTIONS = 64  # in one graph: launching it then costs each of them little
WARM_UPS = 3


class Graphs(Protocol):
    def capture(self, once: Callable[[], object], executions: int) -> Callable[[], object] | None:
        """A call that does what ``executions`` calls of ``once`` do on the device; None where that fails."""
        ...


class CudaGraphs:
    """For the current device. Keeps one stream, so that libraries set themselves up once."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._failed = False

    def capture(self, once: Callable[[], object], executions: int) -> Callable[[], object] | None:
        if self._failed:
            return None
        stream = self._stream = self._stream or torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):  # the stream of before is put back from here if a capture fails
                for _ in range(WARM_UPS):
                    once()
                with torch.cuda.graph(graph, stream=stream):
                    for _ in range(executions):
                        once()
        except RuntimeError:
            self._failed = True
            graph.reset()
            torch.cuda.synchronize()
            return None
        torch.cuda.current_stream().wait_stream(stream)
        return graph.replay


def may_capture(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether nothing is known that speaks against capturing ``func``."""
    call: Call = inspect_call(func, args, kwargs)
    signature = call.signature
    known = signature.is_native and bool(signature.arguments)
    waits = signature.synchronises or signature.random or signature.reshapes
    return known and not waits and all(tensor.device.type == "cuda" for tensor in call.tensors)
