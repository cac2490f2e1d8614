"""Benchmarks tell every coefficient apart, on devices of all sizes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from planted_device import FACTS

from magneton.calibrate.plan import WIDTH_BYTES, benchmarks_for, unit_kind
from magneton.calibrate.workbench import (
    CACHE,
    CONSTANT,
    FLOAT_BYTES,
    LAUNCH,
    MEMORY,
    ZEROS,
    Benchmark,
    DeviceFacts,
    energy_term,
)
from magneton.errors import MagnetonError

PROCESSOR = replace(FACTS, kind="cpu", matrix=(), chains=False, cache_bytes=32 * 2**20, free_bytes=16 * 2**30)
DEVICES = {
    "board": FACTS,
    "board that does not tell its cache": replace(FACTS, cache_bytes=None),
    "old board": replace(FACTS, matrix=(), chains=True, cache_bytes=4e6),
    "board whose memory is nearly full": replace(FACTS, free_bytes=2 * 2**30),
    "processor": PROCESSOR,
    "processor with tiles": replace(PROCESSOR, matrix=("bfloat16",)),
    "processor with a huge cache": replace(PROCESSOR, cache_bytes=300 * 2**20),
}


@pytest.fixture(params=DEVICES, name="facts")
def each_device(request: pytest.FixtureRequest) -> DeviceFacts:
    return DEVICES[request.param]


def named(benchmarks: Sequence[Benchmark], start: str) -> list[Benchmark]:
    return [benchmark for benchmark in benchmarks if benchmark.name.startswith(start)]


def test_terms_are_independent(facts: DeviceFacts) -> None:
    """Energy per second of work at the power that a device of that kind has: no term is made of others."""
    benchmarks = benchmarks_for(facts)
    terms = sorted({term for benchmark in benchmarks for term in benchmark.amounts})
    rows = np.array([[1.0, *(each.amounts.get(term, 0.0) for term in terms)] for each in benchmarks])
    rows /= np.linalg.norm(rows, axis=0)

    assert np.linalg.matrix_rank(rows) == len(terms) + 1
    assert len(benchmarks) > len(terms) + 1


def test_every_coefficient_of_a_device_has_more_than_one_benchmark(facts: DeviceFacts) -> None:
    benchmarks = benchmarks_for(facts)
    needed = {MEMORY, CACHE, energy_term("vector", "float32")}
    needed |= {energy_term(unit_kind(each, facts), each) for each in facts.matrix}

    for term in needed:
        assert sum(term in benchmark.amounts for benchmark in benchmarks) >= 2, term


def test_operands_fit_in_the_memory_that_is_free(facts: DeviceFacts) -> None:
    for benchmark in benchmarks_for(facts):
        width = WIDTH_BYTES[benchmark.arithmetic]
        operands = {"matmul": 3 * benchmark.size**2, "copy": 2 * benchmark.size}
        held = operands.get(benchmark.work, benchmark.size) * width
        assert held <= facts.free_bytes / 2, benchmark.name


def test_streams_from_memory_do_not_fit_in_the_cache_and_those_from_the_cache_do(facts: DeviceFacts) -> None:
    cache_bytes = facts.cache_bytes or 40e6
    for benchmark in benchmarks_for(facts):
        if benchmark.work not in ("sum", "copy"):
            continue
        for level in (MEMORY, MEMORY + ZEROS):
            assert benchmark.amounts.get(level, np.inf) >= 2 * cache_bytes, benchmark.name
        for level in (CACHE, CACHE + ZEROS):
            assert benchmark.amounts.get(level, 0.0) <= cache_bytes / 2, benchmark.name


def test_amounts_are_counted_as_profiles_count_them() -> None:
    benchmarks = {benchmark.name: benchmark for benchmark in benchmarks_for(FACTS)}

    copy = benchmarks["copy in memory, 1024 MiB"]
    assert copy.amounts == {MEMORY: 2.0 * copy.size * FLOAT_BYTES, LAUNCH: 1.0}
    added = benchmarks["sum in memory, 1024 MiB"]
    assert added.amounts[MEMORY] == added.size * FLOAT_BYTES
    assert added.amounts[energy_term("vector", "float32")] == added.size
    matmul = benchmarks["matmul float16, 4096 x 4096"]
    assert matmul.amounts[energy_term("matrix", "float16")] == 2.0 * 4096**3
    assert matmul.amounts[MEMORY] == 3 * 4096**2 * 2
    chain = benchmarks["chain float32, 256 deep"]
    assert chain.amounts[energy_term("vector", "float32")] == 2.0 * 256 * chain.size
    assert benchmarks["rest"].amounts == {}
    assert CONSTANT not in {term for benchmark in benchmarks.values() for term in benchmark.amounts}


def test_a_format_without_a_matrix_unit_is_computed_by_the_vector_unit() -> None:
    (small, large) = named(benchmarks_for(PROCESSOR), "matmul float32")[:2]

    assert small.amounts[energy_term("vector", "float32")] == 2.0 * small.size**3
    assert large.size > small.size


def test_zeros_are_paid_in_terms_of_their_own() -> None:
    for benchmark in benchmarks_for(FACTS):
        terms = benchmark.amounts.keys() - {LAUNCH}
        assert all(term.endswith(ZEROS) == (benchmark.data == "zeros") for term in terms), benchmark.name


def test_names_are_distinct(facts: DeviceFacts) -> None:
    names = [benchmark.name for benchmark in benchmarks_for(facts)]

    assert len(set(names)) == len(names)


def test_a_device_without_room_for_a_stream_from_memory_is_refused() -> None:
    with pytest.raises(MagnetonError, match="300 MiB free") as raised:
        benchmarks_for(replace(FACTS, free_bytes=300 * 2**20))
    assert "memory" in raised.value.hint
