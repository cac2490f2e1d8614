"""What does not depend on all of its place: heads that share a key, repeated heads, padding."""

from collections.abc import Callable

import pytest
from scalify_cases import Layout, Pair, Program, replicated, sharded

from scalify.ir.graph import Graph, NodeId
from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.free import going_on
from scalify.layout.maps import IndexMap, along, solve, then
from scalify.normalize.terms import Terms
from scalify.prove.verify import verify
from scalify.verdict import Proved

HEADS, KEY_HEADS, TOKENS = 8, 4, 6


def program(ranks: int) -> Program:
    return Program(tp=ranks) if ranks > 1 else Program()


def assert_proved(make: Callable[[int], Graph], ranks: int, inputs: dict[str, Layout], dim: int) -> None:
    pair = Pair(
        verdict="proved", baseline=make(1), candidate=make(ranks), inputs=inputs, outputs={"y": sharded(dim)}
    )
    assert not pair.differing()
    assert isinstance(verify(pair.baseline, pair.candidate, pair.relations()), Proved)


def shared_part(p: Program, ranks: int, *, first: bool = False) -> NodeId:
    """Keys of which a part is the same for all heads."""
    own = p.input("own", "f32", (2, HEADS // ranks, 3, 4))
    shared = p.add(
        "broadcast",
        p.input("shared", "f32", (2, 1, 3, 2)),
        shape=(2, HEADS // ranks, 3, 2),
        dims=(0, 1, 2, 3),
    )
    return p.joined(3, *((shared, own) if first else (own, shared)))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("first", [False, True])
def test_a_part_that_all_heads_share_stands_beside_their_own(ranks: int, first: bool) -> None:
    def make(ranks: int) -> Graph:
        p = program(ranks)
        key = shared_part(p, ranks, first=first)
        p.output("y", p.add("mul", key, key))
        return p.graph()

    assert_proved(make, ranks, {"own": sharded(1), "shared": replicated}, 1)


def test_attention_to_keys_of_which_a_part_is_shared() -> None:
    def make(ranks: int) -> Graph:
        p = program(ranks)
        key = shared_part(p, ranks)
        scores = p.product("bhtd,bhsd->bhts", p.input("q", "f32", (2, HEADS // ranks, 5, 6)), key)
        p.output("y", p.product("bhts,bhsd->bhtd", p.add("softmax", scores, axis=3), key))
        return p.graph()

    assert_proved(make, 2, {"own": sharded(1), "shared": replicated, "q": sharded(1)}, 1)


def test_padding_beside_what_is_sharded() -> None:
    def make(ranks: int) -> Graph:
        p = program(ranks)
        x = p.input("x", "f32", (HEADS // ranks, 3))
        p.output("y", p.add("exp", p.add("pad", x, 0.0, low=(0, 0), high=(0, 2), interior=(0, 0))))
        return p.graph()

    assert_proved(make, 2, {"x": sharded(0)}, 0)


def test_a_part_of_another_head_is_not_taken_for_the_own() -> None:
    """What is open may be anything, what is not must be right: heads are shifted by one rank."""

    def make(ranks: int) -> Graph:
        p = program(ranks)
        p.output("y", shared_part(p, ranks))
        return p.graph()

    pair = Pair(
        verdict="unknown",
        baseline=make(1),
        candidate=make(2),
        inputs={"own": sharded(1), "shared": replicated},
        outputs={"y": Layout(text="turned", maps=(lambda mesh, local, full: turned(local, full),))},
    )
    assert pair.differing() == ("y",)
    assert not isinstance(verify(pair.baseline, pair.candidate, pair.relations()), Proved)


def turned(local: tuple[int, ...], full: tuple[int, ...]) -> IndexMap:
    """The second half of the heads on the first of two ranks."""
    heads = Expr(local[1], (Term(0, 1, 2, -local[1]), Term(2, 1, local[1], 1)))
    places = [along(dim + 1, size) for dim, size in enumerate(local)]
    return IndexMap((2, *local), (1, *full), (ZERO, places[0], heads, *places[2:]))


@pytest.mark.parametrize(("dim", "tiled"), [(1, False), (2, False), (2, True)])
def test_a_norm_of_heads_that_were_repeated(dim: int, tiled: bool) -> None:
    def make(ranks: int) -> Graph:
        p = program(ranks)
        cut = ranks if dim == 1 else 1
        heads, times, tokens = KEY_HEADS // cut, HEADS // KEY_HEADS, TOKENS * cut // ranks
        key = p.input("k", "f32", (2, heads, tokens, 4))
        shape = (2, times, heads, tokens, 4) if tiled else (2, heads, times, tokens, 4)
        repeated = p.add("broadcast", key, shape=shape, dims=(0, 2, 3, 4) if tiled else (0, 1, 3, 4))
        repeated = p.shaped(repeated, 2, heads * times, tokens, 4)
        mean = p.mean(p.add("mul", repeated, repeated), 3, keepdims=True)
        p.output("y", p.add("mul", repeated, p.add("rsqrt", mean)))
        return p.graph()

    assert_proved(make, 2, {"k": sharded(dim)}, dim)


def test_what_is_computed_of_repeated_heads_is_computed_once() -> None:
    terms = Terms()
    key = terms.leaf("k", (1, KEY_HEADS, 3))
    pairs = IndexMap(
        (1, HEADS, 3), (1, KEY_HEADS, 3), (ZERO, Expr(0, (Term(1, 2, KEY_HEADS, 1),)), along(2, 3))
    )
    repeated = terms.read(pairs, key)
    assert repeated is not None
    made = terms.point("exp", (repeated,))
    assert made.term == terms.point("exp", (key,)).term
    assert made.index == pairs


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("shared", [False, True])
def test_an_open_place_is_taken_to_be_the_readers_own(ranks: int, shared: bool) -> None:
    own = HEADS // ranks
    head = summed(0, [Term(0, 1, ranks, own), Term(1, 1, own, 1)])
    place = IndexMap((ranks, own, 3), (1, HEADS, 3), (ZERO, head, along(2, 3)))
    pair_of = Expr(0, () if shared else (Term(1, 2, HEADS // 2, 1),))
    given = IndexMap((1, HEADS, 3), (1, 1 if shared else HEADS // 2, 3), (ZERO, pair_of, along(2, 3)))
    seen = then(place, given)
    assert seen is not None
    assert solve([seen], [given]) is None
    assert solve([seen], [given], going_on(place.domain, given.domain)) == place
