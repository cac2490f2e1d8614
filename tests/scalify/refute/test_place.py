"""Inputs on ranks: read through index maps, as if element by element."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalify.layout.digits import Term, summed
from scalify.layout.maps import IndexMap
from scalify.refute.place import read

DIGITS = st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 3]), st.sampled_from([2, 3]), st.integers(0, 2))


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6)),
    st.lists(st.tuples(st.integers(0, 2), st.lists(DIGITS, max_size=2)), min_size=1, max_size=3),
)
def test_elements_are_those_that_the_map_says(
    domain: tuple[int, ...], said: list[tuple[int, list[tuple[int, int, int, int]]]]
):
    coordinates = [summed(offset, [Term(*digit) for digit in digits]) for offset, digits in said]
    index = IndexMap(domain, (16,) * len(said), tuple(coordinates))
    array = np.arange(16 ** len(said)).reshape(index.codomain)
    found = read(index, array)
    assert found.shape == domain
    for place in np.ndindex(*domain):
        wanted = tuple(
            expr.offset
            + sum(term.factor * (place[term.dim] // term.stride % term.size) for term in expr.terms)
            for expr in coordinates
        )
        assert found[place] == array[wanted]
