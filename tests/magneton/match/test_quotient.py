from magneton.match.quotient import MOST_BETWEEN, Quotient, cycles
from magneton.match.unions import Unions


def chain(length: int) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(length - 1)]


def test_circles_are_found_and_nothing_else():
    assert cycles(chain(5)) == []
    assert cycles([*chain(5), (3, 1)]) == [[1, 2, 3]]
    assert cycles([]) == []


def test_a_merge_takes_along_what_lies_between():
    groups = Unions(6)
    Quotient([*chain(6), (1, 3)], groups).join(1, 3)
    assert [groups.find(k) for k in range(6)] == [0, 1, 1, 1, 4, 5]


def test_a_merge_across_too_much_is_not_made():
    groups = Unions(MOST_BETWEEN + 4)
    Quotient([*chain(MOST_BETWEEN + 4), (0, MOST_BETWEEN + 3)], groups).join(0, MOST_BETWEEN + 3)
    assert groups.merges == 0


def test_a_merge_across_a_shared_region_is_not_made():
    groups = Unions(2)
    Quotient([(0, -2), (-2, 1), (0, 1)], groups).join(0, 1)
    assert groups.merges == 0


def test_a_second_merge_sees_the_first():
    groups = Unions(6)
    # 0 -> 1 and 2 -> 3: apart they are no circle; once 0 and 3 are one, so are 1 and 2 between them
    quotient = Quotient([(0, 1), (2, 3), (1, 4), (4, 2)], groups)
    quotient.join(0, 1)
    quotient.join(2, 3)
    quotient.join(1, 3)
    assert len({groups.find(k) for k in range(5)}) == 1
