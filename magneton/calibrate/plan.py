"""Which benchmarks tell a device's coefficients apart.

In: what is known of the device. Out: benchmarks that each lean on one coefficient, in two sizes where that is
possible, so that what the model cannot explain shows as a difference between the two. Bytes and FLOPs are
counted as profiles count them: what an operator reads once and writes once, and from the cache where all
of it fits there.
"""

import math
from collections.abc import Mapping

from magneton.calibrate.workbench import (
    CACHE,
    FLOAT_BYTES,
    LAUNCH,
    MEMORY,
    ZEROS,
    Benchmark,
    Data,
    DeviceFacts,
    Work,
    energy_term,
)
from magneton.errors import MagnetonError
from magneton.profile.device import Arithmetic, UnitKind

WIDTH_BYTES: Mapping[Arithmetic, int] = {"float64": 8, "float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2}

_GUESSED_CACHE_BYTES = {"cpu": 32 * 2**20, "cuda": 40 * 2**20}
# A board's cache is often two halves that hold copies; a processor's has private caches before it.
_CACHE_SHARES = {"cpu": (1 / 4, 1 / 2), "cuda": (1 / 8, 1 / 4)}
_LEAST_MEMORY_BYTES = {"cpu": 256 * 2**20, "cuda": 1024 * 2**20}
_EDGES = {"cpu": (1024, 2048), "cuda": (4096, 8192)}
_CHAIN_ELEMENTS = 2**24
_DEPTHS = (256, 1024)
_SHARE_OF_FREE = 1 / 4


def benchmarks_for(facts: DeviceFacts) -> tuple[Benchmark, ...]:
    """What is run to calibrate this device."""
    cache_bytes = facts.cache_bytes or _GUESSED_CACHE_BYTES[facts.kind]
    far, near = _stream_sizes(facts, cache_bytes)
    rows = [
        Benchmark(name="rest", work="rest", amounts={}),
        Benchmark(name="empty kernels", work="launch", size=1, amounts={LAUNCH: 1.0}),
    ]
    for moved_bytes in far:
        rows += [_stream(work, moved_bytes, MEMORY) for work in ("sum", "copy")]
    for moved_bytes in near:
        rows += [_stream(work, moved_bytes, CACHE) for work in ("sum", "copy")]
    rows += [_stream("copy", far[-1], MEMORY, "zeros"), _stream("copy", near[-1], CACHE, "zeros")]
    for arithmetic in _formats(facts):
        rows += [_matmul(arithmetic, edge, facts, cache_bytes) for edge in _edges(facts)]
    fastest = facts.matrix[-1] if facts.matrix else "float32"
    rows.append(_matmul(fastest, _edges(facts)[-1], facts, cache_bytes, "zeros"))
    if facts.chains:
        rows += [_chain(depth, cache_bytes) for depth in _DEPTHS]
    return tuple({row.name: row for row in rows}.values())


def unit_kind(arithmetic: Arithmetic, facts: DeviceFacts) -> UnitKind:
    """Where a contraction of this format is computed."""
    return "matrix" if arithmetic in facts.matrix else "vector"


def _formats(facts: DeviceFacts) -> tuple[Arithmetic, ...]:
    """float32 last: a small device may run out of time."""
    return (*(arithmetic for arithmetic in facts.matrix if arithmetic in WIDTH_BYTES), "float32")


def _stream_sizes(facts: DeviceFacts, cache_bytes: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes moved by streams from memory and by streams from the cache."""
    most = facts.free_bytes * _SHARE_OF_FREE
    if most < 2 * cache_bytes:
        raise MagnetonError(
            f"{facts.name} has {facts.free_bytes / 2**20:.0f} MiB free, too little for streams that do not "
            f"fit in its cache of {cache_bytes / 2**20:.0f} MiB",
            hint="end what else uses its memory",
        )
    least = max(4 * cache_bytes, _LEAST_MEMORY_BYTES[facts.kind])
    far = tuple(_rounded(min(size, most)) for size in (least, 2 * least))
    near = tuple(_rounded(min(share * cache_bytes, most)) for share in _CACHE_SHARES[facts.kind])
    return far, near


def _stream(work: Work, moved_bytes: int, level: str, data: Data = "random") -> Benchmark:
    """A copy reads half of what it moves and writes the other half; a sum adds all that it reads."""
    place = "memory" if level == MEMORY else "cache"
    suffix = ZEROS if data == "zeros" else ""
    amounts = {level + suffix: float(moved_bytes), LAUNCH: 1.0}
    operands = 2 if work == "copy" else 1
    size = moved_bytes // FLOAT_BYTES // operands
    if work == "sum":
        amounts[energy_term("vector", "float32")] = float(size)
    return Benchmark(
        name=f"{work} in {place}, {moved_bytes / 2**20:.0f} MiB{suffix}",
        work=work,
        size=size,
        data=data,
        amounts=amounts,
    )


def _matmul(
    arithmetic: Arithmetic, edge: int, facts: DeviceFacts, cache_bytes: float, data: Data = "random"
) -> Benchmark:
    suffix = ZEROS if data == "zeros" else ""
    moved_bytes = 3.0 * edge**2 * WIDTH_BYTES[arithmetic]
    level = CACHE if moved_bytes <= cache_bytes else MEMORY
    unit = energy_term(unit_kind(arithmetic, facts), arithmetic)
    return Benchmark(
        name=f"matmul {arithmetic}, {edge} x {edge}{suffix}",
        work="matmul",
        arithmetic=arithmetic,
        size=edge,
        data=data,
        amounts={unit + suffix: 2.0 * edge**3, level + suffix: moved_bytes, LAUNCH: 1.0},
    )


def _chain(depth: int, cache_bytes: float) -> Benchmark:
    moved_bytes = 2.0 * _CHAIN_ELEMENTS * FLOAT_BYTES
    return Benchmark(
        name=f"chain float32, {depth} deep",
        work="chain",
        size=_CHAIN_ELEMENTS,
        depth=depth,
        amounts={
            energy_term("vector", "float32"): 2.0 * depth * _CHAIN_ELEMENTS,
            CACHE if moved_bytes <= cache_bytes else MEMORY: moved_bytes,
            LAUNCH: 1.0,
        },
    )


def _edges(facts: DeviceFacts) -> tuple[int, ...]:
    """Edges whose three float32 matrices fit in the memory that is free."""
    most = math.isqrt(int(facts.free_bytes * _SHARE_OF_FREE) // (3 * FLOAT_BYTES))
    return tuple(min(edge, max(most // 64 * 64, 64)) for edge in _EDGES[facts.kind])


def _rounded(size_bytes: float) -> int:
    """To whole MiB, so that names and counts agree."""
    return max(int(size_bytes) // 2**20, 1) * 2**20
