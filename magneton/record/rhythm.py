"""Does a sensor that looks at a part of each period see all of a load that repeats itself?

The power sensors of A100 and H100 look at 25 ms out of every 100 ms (arXiv 2312.02741). A step whose length
is a multiple of the period shows them the same part of itself every time:

    step     |compute ......|copy ..|compute ......|copy ..|compute ......|copy ..|
    looks    ==              ==              ==              ==

In: how long one piece of the load lasts, and the sensor's period. Out: how uneven the parts of a piece are
seen in one window; and, where that is too much, pauses of random length between pieces, which shift them
against the looks. What pausing costs is known from the idle power, and is taken off by who pauses.
"""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from random import Random

LOOK = 0.25  # of its period, at which a sensor looks: the smallest share known
UNEVEN = 0.015  # from here on a window is paused
MOST_PAUSES = 32  # in one window


def unevenness(piece_s: float, period_s: float, window_s: float) -> float:
    """By how much of a piece the share of any one stretch of it may be seen wrong; 0.0 for an even view.

    A stretch that draws ``d`` watts more than the rest shifts the mean power by ``d`` times this at worst.
    """
    looks = max(1, int(window_s / period_s))
    look_s = LOOK * period_s
    rest_s = look_s % piece_s  # whole pieces within a look are seen evenly
    crossings: list[tuple[float, int]] = []
    seen = 0
    for look in range(looks):
        start_s = look * period_s % piece_s
        stop_s = start_s + rest_s
        crossings.append((start_s, 1))
        crossings.append((stop_s % piece_s, -1))
        seen += stop_s >= piece_s
    crossings.sort()
    mean = looks * rest_s / piece_s
    places_s = [0.0, *(place_s for place_s, _ in crossings), piece_s]
    counts = accumulate((change for _, change in crossings), initial=seen)
    excess_s = accumulate(
        (
            (count - mean) * (after_s - before_s)
            for count, before_s, after_s in zip(counts, places_s, places_s[1:], strict=False)
        ),
        initial=0.0,
    )
    levels_s = tuple(excess_s)
    return (max(levels_s) - min(levels_s)) / (looks * look_s)


def pauses(piece_s: float, period_s: float, pieces: int, generator: Random) -> Mapping[int, float]:
    """How long to pause before which pieces of a window; nothing where the sensor sees the load evenly.

    Together they shift the load by one piece, or by one period if that is shorter: the looks then sweep over
    all of it, at random places within equal steps.
    """
    if period_s <= 0 or piece_s <= 0 or unevenness(piece_s, period_s, pieces * piece_s) < UNEVEN:
        return {}
    count = min(MOST_PAUSES, pieces - 1)
    step_s = min(piece_s, period_s) / (count + 1)
    shifts_s = [0.0, *((number + generator.random()) * step_s for number in range(1, count + 1))]
    places = (number * pieces // (count + 1) for number in range(1, count + 1))
    lengths_s = (after_s - before_s for before_s, after_s in pairwise(shifts_s))
    return dict(zip(places, lengths_s, strict=True))
