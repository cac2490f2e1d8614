"""The same on the same is seen, chains as one; what only looks alike is not."""

from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import profiles
from wasteful import Program, clean_chain, seen

from magneton.audit.repeated import repeated_computation
from magneton.audit.step import step_of
from magneton.profile.model import Effect, Profile
from magneton.workload import CALL

lines = st.lists(st.integers(0, 30), min_size=1, max_size=6)


def table(program: Program, source: int, *, line: int = 40) -> int:
    value = program.op("mul.Scalar", source, shape=(5, 6), line=line)
    return program.op("cos.default", program.view("view.default", value, (5, 6)), shape=(5, 6), line=line + 1)


@given(lines, st.integers(2, 4))
@settings(deadline=None)
def test_a_chain_done_again_is_one_sighting_without_the_first(layers: list[int], runs: int) -> None:
    program = Program()
    source, value = program.given(5, 6, role="buffer"), program.given(5, 6)
    places: list[int] = []
    for run in range(runs):
        start = len(program.operators)
        places += [start, start + 2] * (run > 0)
        value = program.op("add.Tensor", value, table(program, source), shape=(5, 6))
        value = clean_chain(program, value, layers)

    assert seen(repeated_computation, program.step(value)) == [places]


@given(lines)
@settings(deadline=None)
def test_nothing_is_seen_in_a_clean_chain(layers: list[int]) -> None:
    program = Program()

    assert not seen(repeated_computation, program.step(clean_chain(program, program.given(5, 6), layers)))


def twice(effect: Effect = "compute", attributes: tuple[str, str] = ("{}", "{}")) -> Program:
    program = Program()
    value = program.given(5, 6)
    for text in attributes:
        program.op("rand_like.default", value, shape=(5, 6), effect=effect, attributes=text)
    return program


def test_only_equal_work_without_chance_is_done_again() -> None:
    assert seen(repeated_computation, twice().step()) == [[1]]
    assert not seen(repeated_computation, twice("random").step())
    assert not seen(repeated_computation, twice(attributes=('{"p":1}', '{"p":2}')).step())


def test_memory_that_is_written_differently_afterwards_cannot_be_shared() -> None:
    program = Program()
    value = program.given(5, 6)
    for other in (1, 2):
        own = program.op("clone.default", value, shape=(5, 6))
        program.op("mul_.Scalar", shape=(5, 6), into=own, attributes=f'{{"other":{other}}}')

    assert not seen(repeated_computation, program.step())


def test_memory_that_is_written_alike_is_done_again_with_its_writing() -> None:
    program = Program()
    value = program.given(5, 6)
    for _ in range(2):
        own = program.op("clone.default", value, shape=(5, 6))
        program.op("mul_.Scalar", shape=(5, 6), into=own)

    assert seen(repeated_computation, program.step()) == [[2, 3]]


def test_an_operator_that_writes_into_older_memory_is_not_done_again() -> None:
    program = Program()
    value, cache = program.given(5, 6), program.given(5, 6, role="buffer")
    for _ in range(2):
        program.op("copy_.default", value, shape=(5, 6), into=cache)

    assert not seen(repeated_computation, program.step())


def test_an_operator_that_returns_nothing_works_elsewhere() -> None:
    program = Program()
    value = program.given(5, 6)
    for _ in range(2):
        program.op("update_cache.default", value, shape=(0,))

    assert not seen(repeated_computation, program.step())


@given(profiles(max_operators=6))
@settings(deadline=None)
def test_any_profile_is_survived(profile: Profile) -> None:
    for phase in (*profile.origin.workload.phases, CALL):
        assert all(sighting.operators for sighting in repeated_computation(step_of(profile, phase)))
