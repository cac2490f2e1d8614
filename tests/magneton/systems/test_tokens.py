"""An engine that chooses tokens itself is brought to be fed exactly what is given, in few generations."""

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.errors import MagnetonError
from magneton.systems.tokens import settle
from magneton.workload import Continuation

VOCABULARY = 5  # small, so that given and preferred tokens often agree


class Engine:
    """Prefers some token after whatever was fed before; takes another one where it is forced to."""

    def __init__(self, *, rows: int, steps: int, taste: int, obeys: bool = True) -> None:
        self.forced: list[dict[int, int]] = [{} for _ in range(rows)]
        self.generations = 0
        self._steps = steps
        self._taste = taste
        self._obeys = obeys

    def generate(self) -> Continuation:
        self.generations += 1
        rows = [self._row(row, forced) for row, forced in enumerate(self.forced)]
        return tuple(zip(*rows, strict=True))

    def _row(self, row: int, forced: Mapping[int, int]) -> Sequence[int]:
        fed: list[int] = []
        for step in range(self._steps):
            preferred = random.Random(f"{self._taste} {row} {fed}").randrange(VOCABULARY)
            fed.append(forced.get(step, preferred) if self._obeys else preferred)
        return fed


@st.composite
def given_tokens(draw: st.DrawFn) -> Continuation:
    rows, steps = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    token = st.integers(0, VOCABULARY - 1)
    row = st.tuples(*[token] * rows)
    return draw(st.tuples(*[row] * steps))


@given(given_tokens(), st.integers())
def test_it_ends_fed_exactly_what_is_given(tokens: Continuation, taste: int):
    engine = Engine(rows=len(tokens[0]), steps=len(tokens), taste=taste)
    assert settle(engine.generate, tokens, engine.forced) == tokens
    assert engine.generations <= len(tokens) + 1


@given(given_tokens(), st.integers())
def test_it_is_forced_only_where_it_would_choose_otherwise(tokens: Continuation, taste: int):
    """What it would do anyway stays its own doing, as in the run that it is compared with."""
    engine = Engine(rows=len(tokens[0]), steps=len(tokens), taste=taste)
    settle(engine.generate, tokens, engine.forced)
    for row, forced in enumerate(engine.forced):
        for step in forced:
            freed = Engine(rows=len(tokens[0]), steps=len(tokens), taste=taste)
            freed.forced[row] = {other: token for other, token in forced.items() if other != step}
            assert freed.generate()[step][row] != tokens[step][row]


@given(st.integers(1, 4), st.integers(1, 6), st.integers())
def test_where_nothing_is_given_its_own_choice_stands(rows: int, steps: int, taste: int):
    engine = Engine(rows=rows, steps=steps, taste=taste)
    assert settle(engine.generate, None, engine.forced) == engine.generate()
    assert engine.forced == [{}] * rows
    assert engine.generations == 2


@given(given_tokens(), st.integers())
def test_an_engine_that_ignores_what_it_is_given_is_an_error(tokens: Continuation, taste: int):
    engine = Engine(rows=len(tokens[0]), steps=len(tokens), taste=taste, obeys=False)
    if engine.generate() == tokens:
        assert settle(engine.generate, tokens, engine.forced) == tokens
        return
    with pytest.raises(MagnetonError, match=r"does not take the token \d that it is given at decode step \d"):
        settle(engine.generate, tokens, engine.forced)
    assert engine.generations <= 3


def test_nothing_to_decode_is_settled_at_once():
    engine = Engine(rows=2, steps=0, taste=0)
    assert settle(engine.generate, (), engine.forced) == ()
