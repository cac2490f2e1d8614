"""Sides that ran on a board: a host beside it, and the board at rest."""

from dataclasses import replace
from typing import Any

from comparisons import a_side

from magneton.profile.model import IdlePower, Moment, Profile
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

BOARD = MeterInfo(name="nvml", unit="J", provenance=Provenance.MEASURED)
HOST = MeterInfo(name="modelled", unit="J", provenance=Provenance.MODELLED)


def on_a_board(*, host_w: float, spread: float = 0.01, seed: int = 0, **changes: Any) -> Profile:
    """A side whose host draws ``host_w`` while the board works, give or take ``spread``."""
    side = a_side(seed=seed, meter=BOARD, host_meter=HOST, **changes)
    signs = (-1, 1, 0)
    return replace(
        side,
        blocks=tuple(
            replace(block, host_energy_j=host_w * block.duration_s * (1 + spread * signs[block.round % 3]))
            for block in side.blocks
        ),
    )


def at_rest(profile: Profile, power_w: float) -> Profile:
    moments: tuple[tuple[Moment, float], ...] = (("before", 3.0), ("after", 6.0))
    rows = tuple(
        IdlePower(moment=moment, time_s=0.0, duration_s=s, power_w=power_w, host_power_w=None)
        for moment, s in moments
    )
    return replace(profile, idle=rows)
