"""Real kernels, through PyTorch: six operators from microseconds to milliseconds, four of the paper's cases.

Inputs are random from a fixed seed: zeros would draw less. Nothing on the board is set; TF32, a setting of
PyTorch in this process, is set before each execution that depends on it. Shapes follow the reports named in
the cases where these give them.
"""

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from gpu.bench import Case, Subject
from torch import Tensor
from torch.nn import functional

from magneton.errors import MagnetonError
from magneton.meters.clock import Clock, SystemClock

SEED = 0


class TorchBench:
    """On ``device``; ``shrink`` divides every size, so that a test can run it on a processor."""

    def __init__(self, device: str = "cuda:0", shrink: int = 1) -> None:
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise MagnetonError(
                f"this PyTorch ({torch.__version__}) sees no NVIDIA GPU",
                hint="run where there is one, with a PyTorch built for CUDA (--python, or PYTHON=)",
            )
        self.device = device
        self.clock: Clock = SystemClock()
        self.shortest = "add"
        self._shrink = shrink
        self._random = torch.Generator(device).manual_seed(SEED)

    def machine(self) -> Mapping[str, str]:
        torch.ones(1, device=self.device).add(
            1
        )  # a context, which keeps a board out of its deepest idle state
        self.synchronise()
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        if not self.device.startswith("cuda"):
            return versions | {"device": platform.machine()}
        seen: Any = torch.cuda.get_device_properties(self.device)
        return versions | {
            "device": str(seen.name),
            "cuda": str(torch.version.cuda),
            "multiprocessors": str(seen.multi_processor_count),
            "memory_bytes": str(seen.total_memory),
        }

    def operators(self) -> Mapping[str, Callable[[], Subject]]:
        return {
            "gemm bf16": self._gemm_bf16,
            "gemm fp32": self._gemm_fp32,
            "layer norm": self._layer_norm,
            "add": self._add,
            "softmax": self._softmax,
            "embedding": self._embedding,
        }

    def pairs(self) -> Mapping[str, Callable[[], "Pair"]]:
        """What the cases are made of."""
        return {"c8": self._c8, "c10": self._c10, "c12": self._c12, "c13": self._c13}

    def cases(self) -> Mapping[str, Callable[[], Case]]:
        return {name: lambda make=make: make().case() for name, make in self.pairs().items()}

    def synchronise(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)

    def _gemm_bf16(self) -> Subject:
        left, right = (
            self._normal(8192, 4096, dtype=torch.bfloat16),
            self._normal(4096, 4096, dtype=torch.bfloat16),
        )
        out = left @ right
        return repeated(
            "gemm bf16", f"{_shape(left)} @ {_shape(right)}", lambda: torch.mm(left, right, out=out)
        )

    def _gemm_fp32(self) -> Subject:
        left, right = self._normal(4096, 4096), self._normal(4096, 4096)
        out = left @ right

        def multiply() -> None:
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.mm(left, right, out=out)

        return repeated("gemm fp32", f"{_shape(left)} @ {_shape(right)}, without TF32", multiply)

    def _layer_norm(self) -> Subject:
        x = self._normal(16384, 4096, dtype=torch.bfloat16)
        weight, bias = self._vector(x.shape[-1], x.dtype), self._vector(x.shape[-1], x.dtype)
        return repeated(
            "layer norm",
            f"{_shape(x)} bf16",
            lambda: functional.layer_norm(x, weight.shape, weight, bias),
        )

    def _add(self) -> Subject:
        left, right = self._normal(1024, 1024), self._normal(1024, 1024)
        out = left + right
        return repeated(
            "add", f"{_shape(left)} fp32, a few microseconds", lambda: torch.add(left, right, out=out)
        )

    def _softmax(self) -> Subject:
        x = self._normal(16384, 4096)
        return repeated("softmax", f"{_shape(x)} fp32", lambda: functional.softmax(x, dim=-1))

    def _embedding(self) -> Subject:
        table = self._normal(128256, 4096, dtype=torch.bfloat16)
        tokens = self._indices(len(table), 8192 // self._shrink)
        return repeated(
            "embedding",
            f"{len(tokens)} rows of {_shape(table)} bf16",
            lambda: functional.embedding(tokens, table),
        )

    def _c8(self) -> "Pair":
        x, weight, bias = self._normal(8192, 1280), self._normal(5120, 1280), self._normal(5120)

        def linear(tf32: bool) -> Callable[[], object]:
            def run() -> object:
                torch.backends.cuda.matmul.allow_tf32 = tf32
                return functional.linear(x, weight, bias)

            return run

        what = f"{_shape(x)} by {_shape(weight)} fp32"
        return Pair(
            name="c8",
            title="linear layers without TF32 tensor cores (stable-diffusion 279)",
            what=what,
            costly=("allow_tf32 off", linear(False)),
            lean=("allow_tf32 on", linear(True)),
            published=0.125,
        )

    def _c10(self) -> "Pair":
        x = self._normal(4096, 4096, dtype=torch.bfloat16)
        weight = self._normal(4096, 4096, dtype=torch.bfloat16)
        bias = self._vector(weight.shape[1], x.dtype)
        what = f"{_shape(x)} @ {_shape(weight)} + {_shape(bias)} bf16"
        return Pair(
            name="c10",
            title="addmm against mm and add (pytorch 141210)",
            what=what,
            costly=("addmm", lambda: torch.addmm(bias, x, weight)),
            lean=("mm, add", lambda: torch.mm(x, weight).add_(bias)),
            published=0.091,
        )

    def _c12(self) -> "Pair":
        first = self._normal(64, 384, 56, 56)  # [N, C, H, W]: channels lie first in memory
        weight, bias = self._vector(first.shape[1], first.dtype), self._vector(first.shape[1], first.dtype)
        channels_first = first.permute(0, 2, 3, 1)
        channels_last = channels_first.contiguous()

        def norm(x: Tensor) -> Callable[[], object]:
            return lambda: functional.layer_norm(x, weight.shape, weight, bias)

        what = f"over the channels of {_shape(first)} fp32"
        return Pair(
            name="c12",
            title="LayerNorm over an input whose channels lie first in memory (pytorch 76012)",
            what=what,
            costly=("channels first, not contiguous", norm(channels_first)),
            lean=("channels last, contiguous", norm(channels_last)),
            published=0.163,
        )

    def _c13(self) -> "Pair":
        logits = self._normal(1024, 50257)
        labels = self._indices(logits.shape[1], len(logits))

        def parts() -> Tensor:
            return functional.log_softmax(logits, dim=-1).gather(-1, labels[:, None])[:, 0].neg()

        what = f"{_shape(logits)} fp32"
        return Pair(
            name="c13",
            title="F.cross_entropy against log_softmax and gather (pytorch 141822)",
            what=what,
            costly=("cross_entropy", lambda: functional.cross_entropy(logits, labels, reduction="none")),
            lean=("log_softmax, gather", parts),
            published=0.026,
        )

    def _normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        sizes = [max(1, size // self._shrink) for size in shape]
        return torch.randn(sizes, generator=self._random, device=self.device, dtype=dtype)

    def _indices(self, below: int, count: int) -> Tensor:
        return torch.randint(below, (count,), generator=self._random, device=self.device)

    def _vector(self, length: int, dtype: torch.dtype) -> Tensor:
        return torch.randn(length, generator=self._random, device=self.device, dtype=dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two ways to the same result, each with its name: the functions themselves, so that a test can tell."""

    name: str
    title: str
    what: str
    costly: tuple[str, Callable[[], object]]
    lean: tuple[str, Callable[[], object]]
    published: float

    def case(self) -> Case:
        return Case(
            name=self.name,
            title=self.title,
            costly=repeated(self.costly[0], self.what, self.costly[1]),
            lean=repeated(self.lean[0], self.what, self.lean[1]),
            published=self.published,
        )


def repeated(name: str, what: str, execute: Callable[[], object]) -> Subject:
    """``execute``, queued again and again. Its result is dropped at once: the allocator reuses the memory."""

    def run(times: int) -> None:
        with torch.no_grad():
            for _ in range(times):
                execute()

    return Subject(name=name, what=what, run=run)


def _shape(x: Tensor) -> str:
    return str(list(x.shape))
