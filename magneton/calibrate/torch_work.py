"""Benchmarks run by PyTorch, on the processor or on a board.

Kernels shorter than a launch are captured once, many in a row, and replayed as a CUDA graph: started one by
one they would measure the launch. Chains of arithmetic need a kernel that computes without touching memory,
which PyTorch compiles from a line of C++ on boards and offers nowhere else.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from magneton.calibrate.workbench import REST_S, Benchmark, DeviceFacts
from magneton.errors import MagnetonError
from magneton.meters.clock import Clock
from magneton.processor import processor_name
from magneton.profile.device import Arithmetic
from magneton.worker.machine import driver_version

_DTYPES: dict[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_BATCH = 64  # repetitions in a graph
_BATCHED_BYTES = 64 * 2**20  # streams that move less are over before the next can be launched
_CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}

# x -> x * x - 1.9 maps [-1.9, 1.9] onto itself and never settles: one multiplication and addition, new bits.
_CHAIN = """
template <typename T> T chain(T x) {{
  #pragma unroll 64
  for (int i = 0; i < {depth}; ++i) x = x * x - T(1.9);
  return x;
}}
"""


def torch_workbench(device: str, clock: Clock) -> "TorchWorkbench":
    """``device`` is "auto", "cpu" or "cuda:N"."""
    if device == "auto":
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    if device != "cpu":
        count = torch.cuda.device_count()
        ordinal = int(device.partition(":")[2] or "0")
        if ordinal >= count:
            raise MagnetonError(
                f"PyTorch {torch.__version__} sees no {device}: it sees {count} boards",
                hint="--device cpu, or a PyTorch built for this board and its driver",
            )
        device = f"cuda:{ordinal}"
    return TorchWorkbench(device, clock)


class TorchWorkbench:
    """Holds the operands of one benchmark at a time. On a board, opening it creates the context."""

    def __init__(self, device: str, clock: Clock) -> None:
        self.device = device
        self._clock = clock
        self._on_board = device.startswith("cuda")
        self._prepared = ""
        self._steps: tuple[Callable[[], object], Callable[[], object] | None] = (_nothing, None)
        torch.ones(1, device=device).add_(1)
        self.synchronise()

    def facts(self) -> DeviceFacts:
        return _board_facts(self.device) if self._on_board else _processor_facts()

    def run(self, benchmark: Benchmark, repetitions: int) -> None:
        if benchmark.work == "rest":
            self._clock.sleep(REST_S * repetitions)
            return
        with torch.inference_mode():
            if benchmark.name != self._prepared:
                self._prepare(benchmark)
            torch.backends.cuda.matmul.allow_tf32 = benchmark.arithmetic == "tf32"
            once, batch = self._steps
            if batch is not None:
                for _ in range(repetitions // _BATCH):
                    batch()
                repetitions %= _BATCH
            for _ in range(repetitions):
                once()

    def synchronise(self) -> None:
        if self._on_board:
            torch.cuda.synchronize(self.device)

    def _prepare(self, benchmark: Benchmark) -> None:
        self._steps = (_nothing, None)  # lets go of the operands before new ones are made
        try:
            once = _step(benchmark, self.device)
            once()
            self.synchronise()
        except torch.OutOfMemoryError as error:
            raise MagnetonError(
                f"{self.device} has too little memory free for {benchmark.name!r}",
                hint="end what else uses its memory",
            ) from error
        short = benchmark.work in ("sum", "copy") and moved_bytes(benchmark) < _BATCHED_BYTES
        self._steps = (once, _captured(once) if self._on_board and short else None)
        self._prepared = benchmark.name


def moved_bytes(benchmark: Benchmark) -> float:
    """Bytes that one repetition moves, from wherever."""
    return sum(count for term, count in benchmark.amounts.items() if "per_byte" in term)


def _nothing() -> None:
    """Before anything is prepared."""


def _step(benchmark: Benchmark, device: str) -> Callable[[], object]:
    """One repetition, its operands made and its results going where earlier ones went."""
    dice = torch.Generator(device=device).manual_seed(0)

    def operand(*shape: int) -> torch.Tensor:
        dtype = _DTYPES[benchmark.arithmetic]
        if benchmark.data == "zeros":
            return torch.zeros(shape, dtype=dtype, device=device)
        return torch.randn(shape, dtype=dtype, device=device, generator=dice)

    size = benchmark.size
    if benchmark.work == "launch":
        counter = operand(1)
        return lambda: counter.add_(1)
    if benchmark.work == "sum":
        added, total = operand(size), operand(1)[0]
        return lambda: torch.sum(added, dim=0, out=total)
    if benchmark.work == "copy":
        copied, copy = operand(size), operand(size)
        return lambda: copy.copy_(copied)
    if benchmark.work == "matmul":
        left, right, product = operand(size, size), operand(size, size), operand(size, size)
        return lambda: torch.mm(left, right, out=product)
    start, chain = operand(size).clamp_(-1.5, 1.5), _chain(benchmark.depth)
    return lambda: chain(start)


def _chain(depth: int) -> Callable[[torch.Tensor], torch.Tensor]:
    jiterator: Any = torch.cuda.jiterator
    return jiterator._create_jit_fn(_CHAIN.format(depth=depth))  # documented under this name


def _chains_run(device: str) -> bool:
    """Not where PyTorch comes without the compiler that it uses for them."""
    try:
        _chain(1)(torch.zeros(1, device=device))
    except RuntimeError:
        return False
    return True


def _captured(once: Callable[[], object]) -> Callable[[], object]:
    """``_BATCH`` repetitions as a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_BATCH):
            once()
    return graph.replay


def _board_facts(device: str) -> DeviceFacts:
    properties: Any = torch.cuda.get_device_properties(device)
    free_bytes, _ = torch.cuda.mem_get_info(device)
    amd = torch.version.hip is not None
    return DeviceFacts(
        name=torch.cuda.get_device_name(device),
        kind="cuda",
        driver=driver_version(device),
        software=f"torch {torch.__version__}",
        cache_bytes=float(properties.L2_cache_size) or None,
        free_bytes=int(free_bytes),
        matrix=("float16", "bfloat16") if amd else _tensor_cores(properties.major),
        chains=_chains_run(device),
    )


def _tensor_cores(major: int) -> tuple[Arithmetic, ...]:
    """The formats of the tensor cores that ``torch.mm`` uses, by major compute capability."""
    if major >= 8:
        return ("tf32", "bfloat16", "float16")
    return ("float16",) if major == 7 else ()


def _processor_facts() -> DeviceFacts:
    return DeviceFacts(
        name=processor_name(),
        kind="cpu",
        driver="",
        software=f"torch {torch.__version__}, {torch.get_num_threads()} threads",
        cache_bytes=last_cache_bytes(),
        free_bytes=_free_bytes(),
        matrix=("bfloat16",) if _multiplies_bfloat16() else (),
        chains=False,
    )


def _multiplies_bfloat16() -> bool:
    """Tiles (AMX) or dot products of AVX-512. Nothing public tells."""
    cpu: Any = torch.cpu
    return bool(cpu._is_amx_tile_supported() or cpu._is_avx512_bf16_supported())


def last_cache_bytes(caches: Path = _CPU_CACHES) -> float | None:
    """The size of the last level that the first core shares, as the kernel tells it."""
    sizes: dict[int, float] = {}
    for index in caches.glob("index*"):
        with suppress(OSError, ValueError, KeyError):
            level, size = (index / "level").read_text(), (index / "size").read_text().strip()
            sizes[int(level)] = int(size[:-1]) * _UNITS[size[-1]]
    return sizes[max(sizes)] if sizes else None


def _free_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """What can be taken without swapping; 2 GiB where the kernel does not tell."""
    with suppress(OSError, ValueError):
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 2 * 2**30
