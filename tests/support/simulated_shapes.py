"""What simulated boards are like. Periods and boxcars are those of arXiv 2312.02741; lags, rise times and
thermal figures are assumed, of a plausible size: nobody has published them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

VOLTA, AMPERE, ADA, HOPPER = 5, 7, 8, 9  # NVML's numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardShape:
    """One model of board and its sensor."""

    name: str
    architecture: int
    memory_bytes: float
    idle_w: float  # in P0, which a context keeps
    deep_idle_w: float  # without a context
    limit_w: float
    sm_mhz: float
    memory_mhz: float
    deep_idle_mhz: float = 210.0
    rise_s: float = 0.004
    thermal_s: float = 40.0
    thermal_c_per_w: float = 0.09
    ambient_c: float = 27.0
    leakage_w_per_c: float = 0.25
    leakage_from_c: float = 27.0  # programmed power is exact at this temperature
    period_s: float = 0.1
    boxcar_s: float = 0.025
    lag_s: float = 0.01
    averages: bool = False  # field 185, and what nvmlDeviceGetPowerUsage answers, are 1 s averages
    instant: bool = True  # field 186
    memory_share: float = 0.0  # of the power, published for the memory; 0: not offered
    dead_s: float = 0.0  # after each read, energy of this long (mean, exponential) is never counted
    mig_capacity: int = 0


V100 = BoardShape(
    name="Tesla V100-SXM2-32GB",
    architecture=VOLTA,
    memory_bytes=32 * 2**30,
    idle_w=55.0,
    deep_idle_w=40.0,
    limit_w=300.0,
    sm_mhz=1530.0,
    memory_mhz=877.0,
    period_s=0.02,
    boxcar_s=0.01,
    lag_s=0.005,
)
A100 = BoardShape(
    name="NVIDIA A100-SXM4-80GB",
    architecture=AMPERE,
    memory_bytes=80 * 2**30,
    idle_w=80.0,
    deep_idle_w=55.0,
    limit_w=400.0,
    sm_mhz=1410.0,
    memory_mhz=1593.0,
    mig_capacity=7,
)
H100 = BoardShape(
    name="NVIDIA H100 80GB HBM3",
    architecture=HOPPER,
    memory_bytes=80 * 2**30,
    idle_w=115.0,
    deep_idle_w=70.0,
    limit_w=700.0,
    sm_mhz=1980.0,
    memory_mhz=2619.0,
    thermal_c_per_w=0.06,
    averages=True,
    memory_share=0.3,
    mig_capacity=7,
)
# The dead time is fitted to what polling loses on this board (Dauner et al., HotCarbon'26): 95 % at 0.5 ms,
# 76 % at 10 ms, 13 % at 100 ms, 1.6 % at 1 s. Its boxcar is not published and taken to be its period.
RTX_4090 = BoardShape(
    name="NVIDIA GeForce RTX 4090",
    architecture=ADA,
    memory_bytes=24 * 2**30,
    idle_w=55.0,
    deep_idle_w=22.0,
    limit_w=450.0,
    sm_mhz=2520.0,
    memory_mhz=10501.0,
    thermal_c_per_w=0.1,
    boxcar_s=0.1,
    averages=True,
    dead_s=0.015,
)
SHAPES = {"V100": V100, "A100": A100, "H100": H100, "RTX_4090": RTX_4090}


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One board: a shape, and what is this specimen's own."""

    shape: BoardShape
    uuid: str | None = None  # None: made from its place
    bus: int | None = None  # PCI bus, by which NVML counts; None: by its place
    gain: float = 1.0
    offset_w: float = 0.0
    noise_w: float = 0.0  # of each published figure, standard deviation
    phase_s: float = 0.0  # of the ticks
    jitter_s: float = 0.0  # of each tick, uniform over this width
    counter: Literal["integral", "sampled"] = "integral"  # of true power, or of published power
    counter_start_j: float = 5000.0
    hold_s: float = 0.0  # a read sooner than this after another one answers the same
    hold_loses: bool = False  # and what was spent between the two is never counted
    module_w: float = -1.0  # beside the board's own; negative: there is no module scope
    mig_slices: int = 0  # 0: MIG is off
    context: bool = True


def settings_text(boards: Iterable[Board], **system: float | str) -> str:
    """Boards in the order of their bus, as the library reads them."""
    placed = [
        (board.bus if board.bus is not None else 16 * (place + 1), board)
        for place, board in enumerate(boards)
    ]
    lines = [record("system", system)] if system else []
    for place, (bus, board) in enumerate(sorted(placed, key=lambda each: each[0])):
        own = {
            each.name: getattr(board, each.name)
            for each in fields(board)
            if each.name not in {"shape", "uuid", "bus", "counter"}
        }
        shape = {each.name: getattr(board.shape, each.name) for each in fields(board.shape)}
        named = {
            "uuid": board.uuid or f"GPU-{uuid5(NAMESPACE_OID, f'simulated board {place}')}",
            "bus": bus,
            "sampled": board.counter == "sampled",
        }
        lines.append(record("board", shape | own | named))
    return "\n".join(lines)


def record(kind: str, values: Mapping[str, float | str]) -> str:
    written = [
        f"{key}={value if isinstance(value, str) else repr(float(value))}" for key, value in values.items()
    ]
    return "\t".join([kind, *written])
