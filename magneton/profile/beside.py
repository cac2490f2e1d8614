"""What a recording holds beside the energy of its steps: the host's energy, and the device's at rest.

Neither is ever added to a step's energy. Net energy is what a step costs above the device at rest: it
flatters a slow variant, for which more of the rest is taken off, and is told beside the gross figure only.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from magneton.profile.cost import StepCosts, clean_costs
from magneton.profile.model import BlockReading, IdlePower, Profile
from magneton.workload import Phase


def idle_power_w(profile: Profile) -> float | None:
    """What the device draws with the system loaded and at rest; None where that was not measured."""
    return _weighted(profile.idle, lambda idle: idle.power_w)


def host_idle_power_w(profile: Profile) -> float | None:
    """The same of the host."""
    return _weighted(profile.idle, lambda idle: idle.host_power_w)


def net_costs_j(profile: Profile, phase: Phase) -> StepCosts | None:
    """Energy of a step above the device at rest, by round; None where rest was not measured."""
    rest_w = idle_power_w(profile)
    if rest_w is None:
        return None
    gross = clean_costs(profile, phase)
    return StepCosts(
        rounds=gross.rounds,
        cost=gross.cost - rest_w * gross.duration_s,
        duration_s=gross.duration_s,
        unit=gross.unit,
    )


def host_costs_j(profile: Profile, phase: Phase) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Rounds of the clean pass, ascending, and what the host spent on a step in each; nan where unread."""
    blocks = [block for block in profile.blocks if block.pass_ == "clean" and block.phase == phase]
    rounds = tuple(sorted({block.round for block in blocks}))
    return rounds, np.array([_host_j(block for block in blocks if block.round == r) for r in rounds])


def _host_j(blocks: Iterable[BlockReading]) -> float:
    read = [(block.host_energy_j, block.steps) for block in blocks if block.host_energy_j is not None]
    return sum(energy_j for energy_j, _ in read) / sum(steps for _, steps in read) if read else float("nan")


def _weighted(rows: Iterable[IdlePower], power_w: Callable[[IdlePower], float | None]) -> float | None:
    """Mean over time of the readings there are."""
    read = [(found, row.duration_s) for row in rows if (found := power_w(row)) is not None]
    return sum(w * s for w, s in read) / sum(s for _, s in read) if read else None
