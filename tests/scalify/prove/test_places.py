"""Maps tried at places: the same functions as their tables, at corners and inside."""

from random import Random

import numpy as np
from random_layouts import Layouts, places

from scalify.prove.places import all_points, are_inside, moved, points_of, read_at


def test_points_have_the_corners_and_are_inside() -> None:
    points = points_of((2, 1, 5))
    assert are_inside(points, (2, 1, 5)) and not are_inside(points, (2, 1, 4))
    found = {tuple(column) for column in points.T.tolist()}
    assert {(0, 0, 0), (1, 0, 0), (0, 0, 4), (1, 0, 4)} <= found
    assert len(found) == 10, "a small box is met everywhere"


def test_the_last_corner_of_many_dimensions_is_met() -> None:
    points = points_of((2,) * 10)
    assert [1] * 10 in points.T.tolist()


def test_maps_are_read_as_their_tables_say() -> None:
    layouts = Layouts(Random(9))
    for _ in range(300):
        index = layouts.chain(layouts.shape())
        points = points_of(index.domain)
        table = np.stack([place[tuple(points)] for place in places(index)])
        np.testing.assert_array_equal(read_at(index, points), table)


def test_every_point_of_a_box() -> None:
    assert all_points((2, 3)).T.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert moved(all_points((1, 2)), [5, -1]).T.tolist() == [[5, -1], [5, 0]]
