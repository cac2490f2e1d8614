"""RAPL's energy counters, as Linux shows them under ``/sys/class/powercap``.

In: a folder of that layout. Out: the zones whose sum is what the processors and their memory spend, each
joule once, or a ``SensorAbsent`` or ``SensorUnusable`` that says what is in the way.

    intel-rapl:0       package-0      everything on one processor (the name is the same on AMD)
    intel-rapl:0:0     core           part of package-0
    intel-rapl:0:1     dram           its memory: not part of package-0
    intel-rapl:1       psys           the whole platform, packages included
    intel-rapl-mmio:0  package-0      the same counter by another road

The files are the kernel's, but a container may have mounted anything in their place.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from magneton.meters.sensors import SensorAbsent, SensorUnusable

POWERCAP = Path("/sys/class/powercap")
PLATFORM, MEMORY = "psys", "dram"

_ZONE = re.compile(r"(?P<road>intel-rapl(-mmio)?):(?P<number>\d{1,4})(:(?P<part>\d{1,4}))?")
_PATTERNS = (
    "intel-rapl*:*",  # the kernel's own view: every zone beside its control type, as a link
    "intel-rapl*/intel-rapl*:*",  # where only the control type is mounted
    "intel-rapl*/intel-rapl*:*/intel-rapl*:*:*",
)
_LONGEST = 64  # bytes of a file worth reading
_LARGEST_UJ = 2**64

Read = Callable[[Path], bytes]


def read_beginning(file: Path) -> bytes:
    """The first bytes of a regular file. A pipe in its place would be waited for without end."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One counter. ``range_uj`` is where it starts again from 0; None: not known."""

    path: Path
    label: str  # "package-0", "package-0/dram", "psys"
    range_uj: int | None
    read: Read = read_beginning

    @property
    def file(self) -> Path:
        return self.path / "energy_uj"

    def energy_uj(self) -> int:
        """What the counter says now; SensorUnusable where it cannot be read or holds something else."""
        return _count(self.read, self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A zone's folder, before it is known what its counter is good for."""

    path: Path
    name: str
    road: str
    number: int
    part: int | None


def summed_zones(root: Path = POWERCAP, read: Read = read_beginning) -> tuple[Zone, ...]:
    """The zones to add up: packages with their memory, or the platform where no package is shown.

    All of them could be read a moment ago.
    """
    entries = _entries(root, read)
    tops = _each_once([entry for entry in entries if entry.part is None])
    packages = [entry for entry in tops if entry.name.startswith("package-")]
    chosen = packages or [entry for entry in tops if entry.name == PLATFORM]
    if not chosen:
        _check_not_masked(entries)
        raise SensorAbsent(
            f"the kernel shows no energy counter of the processor under {root}",
            hint="virtual machines hide RAPL, and ARM processors have none: run on the machine itself, "
            "or use --meter modelled",
        )
    zones: list[Zone] = []
    for top in chosen:
        zones.append(_zone(top, top.name, read))
        zones += [_zone(part, f"{top.name}/{part.name}", read) for part in _memory_of(top, entries)]
    _check_readable(zones)
    return tuple(zones)


def zone_names(root: Path = POWERCAP, read: Read = read_beginning) -> Mapping[int, str]:
    """What the zones ``intel-rapl:N`` are called, by N."""
    entries = _entries(root, read)
    return {
        entry.number: entry.name for entry in entries if entry.part is None and entry.road == "intel-rapl"
    }


def _entries(root: Path, read: Read) -> tuple[_Entry, ...]:
    """Every zone below ``root``, once, however often a link shows it; in order of number and part."""
    found: dict[str, _Entry] = {}
    for path in (path for pattern in _PATTERNS for path in sorted(root.glob(pattern))):
        spelled = _ZONE.fullmatch(path.name)
        if spelled is None or path.name in found:
            continue
        part = spelled["part"]
        found[path.name] = _Entry(
            path=path,
            name=_name(read, path / "name"),
            road=spelled["road"],
            number=int(spelled["number"]),
            part=None if part is None else int(part),
        )
    return tuple(sorted(found.values(), key=lambda entry: (entry.road, entry.number, entry.part or 0)))


def _each_once(tops: Sequence[_Entry]) -> list[_Entry]:
    """One zone for each name: ``intel-rapl`` sorts before its mirror ``intel-rapl-mmio``."""
    by_name: dict[str, _Entry] = {}
    for entry in tops:
        by_name.setdefault(entry.name, entry)
    return list(by_name.values())


def _memory_of(top: _Entry, entries: Sequence[_Entry]) -> list[_Entry]:
    parts = [entry for entry in entries if (entry.road, entry.number) == (top.road, top.number)]
    return [entry for entry in parts if entry.part is not None and entry.name == MEMORY]


def _zone(entry: _Entry, label: str, read: Read) -> Zone:
    range_uj = None
    with suppress(SensorUnusable):  # known to happen in containers: the counter is good until it wraps
        range_uj = _count(read, entry.path / "max_energy_range_uj") or None
    return Zone(path=entry.path, label=label, range_uj=range_uj, read=read)


def _name(read: Read, file: Path) -> str:
    """A zone's own name; "" for one that cannot be read, which is then no zone that we know."""
    with suppress(OSError):
        return read(file).decode("ascii", "replace").strip()
    return ""


def _check_not_masked(entries: Sequence[_Entry]) -> None:
    """Container runtimes cover what the links lead to, on account of the same leak."""
    masked = [entry.path for entry in entries if not entry.path.exists()]
    if masked:
        raise SensorUnusable(
            f"{masked[0]} leads nowhere: container runtimes hide /sys/devices/virtual/powercap",
            hint="docker run --security-opt systempaths=unconfined shows it; or measure outside of the "
            "container",
        )


def _check_readable(zones: Sequence[Zone]) -> None:
    closed: list[Path] = []
    for zone in zones:
        try:
            zone.read(zone.file)
        except PermissionError:
            closed.append(zone.file)
        except OSError as error:
            raise _unreadable(zone.file, error) from error
    if closed:
        raise _closed(closed)


def _count(read: Read, file: Path) -> int:
    try:
        text = read(file).decode("ascii", "replace").strip()
    except PermissionError as error:
        raise _closed([file]) from error
    except OSError as error:
        raise _unreadable(file, error) from error
    if not (text.isdecimal() and int(text) <= _LARGEST_UJ):
        raise SensorUnusable(
            f"{file} holds {text!r} and no count of microjoules",
            hint="is something else mounted there? choose another meter",
        )
    return int(text)


def _unreadable(file: Path, error: OSError) -> SensorUnusable:
    return SensorUnusable(
        f"{file} cannot be read: {error.strerror}",
        hint="was the kernel module intel_rapl_msr unloaded, or is something else mounted there?",
    )


def _closed(files: Sequence[Path]) -> SensorUnusable:
    """How whoever administers the machine lets others read these files, and what that gives away."""
    listed = " ".join(str(file) for file in files)
    return SensorUnusable(
        f"only root may read {listed}: since Linux 5.10 energy counters are closed to others, because "
        "they tell what neighbours compute (PLATYPUS, CVE-2020-8694)",
        hint=f"until the next boot: sudo chmod o+r {listed}; for good, a udev rule: "
        'SUBSYSTEM=="powercap", ACTION=="add", RUN+="/bin/chmod o+r /sys%p/energy_uj"; on a machine that is '
        "shared, chgrp and chmod g+r for a trusted group instead; or run zeusd and use --meter zeus",
    )
