"""A machine's RAPL without the machine: folders as under /sys/class/powercap, counters that a clock drives.

    clock = TurnedClock()
    tree = PowercapTree(tmp_path, clock)
    tree.add("intel-rapl:0", "package-0", power_w=50.0)
    RaplMeter(summed_zones(tree.root, tree.read), clock=clock)

Names and ranges are real files; counters are worked out when they are read: what the zone's power has added
up to at the latest update, modulo its range.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from magneton.meters.clock import Clock, Watch
from magneton.meters.powercap import read_beginning

RANGE_UJ = 262_143_328_850  # of a package of a server


@dataclass(slots=True)
class TurnedClock:
    """Virtual time (a ``magneton.meters.clock.Clock``): it passes by sleeping, and calls its watches."""

    time_s: float = 1000.0
    watches: list["TurnedWatch"] = field(default_factory=list["TurnedWatch"])

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, duration_s: float) -> None:
        until_s = self.time_s + duration_s
        while self.watches and (first := min(self.watches, key=lambda watch: watch.due_s)).due_s <= until_s:
            self.time_s = first.due_s
            first.due_s += first.look()
        self.time_s = until_s

    def skip(self, duration_s: float) -> None:
        """Pass time in which nobody gets to look, as while a process is stopped."""
        self.time_s += duration_s
        for watch in self.watches:
            watch.due_s += duration_s

    def watch(self, look: Callable[[], float]) -> Watch:
        watch = TurnedWatch(self, look, self.time_s + look())
        self.watches.append(watch)
        return watch


@dataclass(slots=True, eq=False)
class TurnedWatch:
    """Called whenever it is due while the clock sleeps."""

    clock: TurnedClock
    look: Callable[[], float]
    due_s: float

    def stop(self) -> None:
        self.clock.watches.remove(self)


@dataclass(slots=True)
class FakeZone:
    """A counter. It started at ``offset_uj``; ``energy_j`` is the truth up to ``since_s``."""

    range_uj: int
    power_w: float
    offset_uj: int
    period_s: float
    since_s: float
    energy_j: float = 0.0
    problem: OSError | None = None  # what reading it answers

    def true_j(self, now_s: float) -> float:
        return self.energy_j + self.power_w * (now_s - self.since_s)

    def draw(self, now_s: float, power_w: float) -> None:
        """From now on."""
        self.energy_j, self.since_s, self.power_w = self.true_j(now_s), now_s, power_w

    def reset(self, now_s: float) -> None:
        self.offset_uj = -round(self.true_j(now_s) * 1e6)

    def published_uj(self, now_s: float) -> int:
        update_s = max(self.since_s, now_s // self.period_s * self.period_s)
        return (self.offset_uj + round(self.true_j(update_s) * 1e6)) % self.range_uj


class PowercapTree:
    """``root`` is what the kernel would show at /sys/class/powercap."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.root = root
        self.clock = clock
        self.zones: dict[str, FakeZone] = {}

    def add(
        self,
        zone: str,
        name: str,
        *,
        power_w: float,
        range_uj: int = RANGE_UJ,
        offset_uj: int = 5_000_000,
        period_s: float = 1e-3,
        range_shown: bool = True,
        folder: str = "",
    ) -> FakeZone:
        """A zone such as "intel-rapl:0"; ``folder``: where it lies below the root."""
        path = self.root / folder / zone
        path.mkdir(parents=True)
        (path / "name").write_text(f"{name}\n")
        (path / "energy_uj").write_text(f"{offset_uj}\n")
        if range_shown:
            (path / "max_energy_range_uj").write_text(f"{range_uj}\n")
        self.zones[zone] = FakeZone(
            range_uj=range_uj,
            power_w=power_w,
            offset_uj=offset_uj,
            period_s=period_s,
            since_s=self.clock.now_s(),
        )
        return self.zones[zone]

    def read(self, file: Path) -> bytes:
        """As the kernel answers; counters follow the clock."""
        zone = self.zones.get(file.parent.name)
        if zone is None or file.name != "energy_uj":
            return read_beginning(file)
        if zone.problem is not None:
            raise zone.problem
        return f"{zone.published_uj(self.clock.now_s())}\n".encode()

    def close_to_users(self, *zones: str) -> None:
        """As Linux has it since 5.10: root only."""
        for zone in zones:
            self.zones[zone].problem = PermissionError(errno.EACCES, "Permission denied")

    def take_away(self, zone: str) -> None:
        self.zones[zone].problem = OSError(errno.ENODEV, "No such device")

    def bring_back(self, zone: str) -> None:
        self.zones[zone].problem = None


def two_packages(root: Path, clock: Clock) -> PowercapTree:
    """A server with two processors, as an Intel machine shows it: with parts, platform and mirror."""
    tree = PowercapTree(root, clock)
    for package in range(2):
        tree.add(f"intel-rapl:{package}", f"package-{package}", power_w=80.0)
        tree.add(f"intel-rapl:{package}:0", "dram", power_w=10.0)
        tree.add(f"intel-rapl:{package}:1", "core", power_w=60.0)
        tree.add(f"intel-rapl:{package}:2", "uncore", power_w=15.0)
        tree.add(f"intel-rapl-mmio:{package}", f"package-{package}", power_w=80.0)
    tree.add("intel-rapl:2", "psys", power_w=400.0)
    return tree
