"""How wrong a window is under a sensor that looks at 25 ms of every 100 ms, by the length of a step.

    python benchmarks/sensor_rhythm.py

A step draws 350 W for two fifths of its length and 100 W for the rest; a window lasts 2.5 s and begins at a
random moment. Three ways: no pauses, eight pauses of random length below a period, pauses as
``magneton.record.rhythm`` makes them. What pauses draw is known exactly here. Everything is computed: the
figures are the same on every machine.
"""

from collections.abc import Callable, Mapping
from random import Random
from statistics import pstdev

from magneton.record.rhythm import pauses, unevenness

PERIOD_S, LOOK_S, WINDOW_S = 0.1, 0.025, 2.5
HIGH_W, LOW_W, IDLE_W, HIGH_SHARE = 350.0, 100.0, 70.0, 0.4
TRIALS = 300
STEPS_MS = (1.0, 5.0, 7.1, 10.0, 20.0, 30.7, 50.0, 100.0, 100.3, 200.0, 237.0)

Pausing = Callable[[float, int, Random], Mapping[int, float]]


def never(step_s: float, steps: int, generator: Random) -> Mapping[int, float]:
    del step_s, steps, generator
    return {}


def at_random(step_s: float, steps: int, generator: Random) -> Mapping[int, float]:
    del step_s
    count = min(8, steps - 1)
    return {(place + 1) * steps // (count + 1): generator.uniform(0, PERIOD_S) for place in range(count)}


def sweeping(step_s: float, steps: int, generator: Random) -> Mapping[int, float]:
    return pauses(step_s, PERIOD_S, steps, generator)


def window(step_s: float, pausing: Pausing, generator: Random) -> float:
    """Energy as the sensor has it over the truth, less 1."""
    steps = max(1, round(WINDOW_S / step_s))
    paused = pausing(step_s, steps, generator)
    ends_s, spent_j = [0.0], [0.0]

    def draw(length_s: float, power_w: float) -> None:
        ends_s.append(ends_s[-1] + length_s)
        spent_j.append(spent_j[-1] + length_s * power_w)

    for step in range(steps):
        draw(paused.get(step, 0.0), IDLE_W)
        draw(HIGH_SHARE * step_s, HIGH_W)
        draw((1 - HIGH_SHARE) * step_s, LOW_W)
    seen_w = mean_seen_w(ends_s, spent_j, generator.uniform(0, PERIOD_S))
    step_j = step_s * (HIGH_SHARE * HIGH_W + (1 - HIGH_SHARE) * LOW_W)
    return (seen_w * ends_s[-1] - IDLE_W * sum(paused.values())) / (steps * step_j) - 1


def mean_seen_w(ends_s: list[float], spent_j: list[float], first_s: float) -> float:
    """Over all looks that lie within; ``first_s`` is when the first one begins."""
    looks_s = [first_s + number * PERIOD_S for number in range(int((ends_s[-1] - first_s) / PERIOD_S) + 1)]
    whole_s = [at_s for at_s in looks_s if at_s + LOOK_S <= ends_s[-1]]
    moments_s = sorted([*whole_s, *(at_s + LOOK_S for at_s in whole_s)])
    levels_j: dict[float, float] = {}
    place = 0
    for at_s in moments_s:
        while ends_s[place + 1] < at_s:
            place += 1
        share = (at_s - ends_s[place]) / (ends_s[place + 1] - ends_s[place])
        levels_j[at_s] = spent_j[place] + share * (spent_j[place + 1] - spent_j[place])
    seen_j = sum(levels_j[at_s + LOOK_S] - levels_j[at_s] for at_s in whole_s)
    return seen_j / (len(whole_s) * LOOK_S)


def main() -> None:
    print(f"{'step':>9} {'uneven':>7} {'no pauses':>10} {'8 at random':>12} {'sweeping':>9} {'paused':>7}")
    for step_ms in STEPS_MS:
        step_s, generator = step_ms * 1e-3, Random(1)
        steps = max(1, round(WINDOW_S / step_s))
        uneven = unevenness(step_s, PERIOD_S, steps * step_s)
        plain, random, swept = (
            pstdev([window(step_s, pausing, generator) for _ in range(TRIALS)])
            for pausing in (never, at_random, sweeping)
        )
        cost = sum(sweeping(step_s, steps, generator).values()) / (steps * step_s)
        print(f"{step_ms:6.1f} ms {uneven:7.3f} {plain:9.1%} {random:11.1%} {swept:9.1%} {cost:7.1%}")


if __name__ == "__main__":
    main()
