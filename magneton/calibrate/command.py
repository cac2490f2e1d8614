"""``magneton calibrate`` as a call: from what the user typed to a device file on the disk."""

from pathlib import Path

from magneton.calibrate.calibration import Calibration, Readings, calibrate
from magneton.calibrate.sensor import open_sensor
from magneton.calibrate.torch_work import torch_workbench
from magneton.calibrate.workbench import Workbench
from magneton.calibrate.write import ROOM_BYTES, device_file, keep_readings
from magneton.errors import Interrupted, MagnetonError
from magneton.meters.clock import Clock, SystemClock
from magneton.meters.devices import SUFFIX, device_names, read_model
from magneton.meters.meter import Meter
from magneton.profile.output import reserve
from magneton.record.progress import Progress
from magneton.settings import check_device


def calibrate_device(
    device: str, meter: str, output: Path | None, *, budget_s: float, seed: int, progress: Progress
) -> tuple[Path, Calibration]:
    """Calibrate the device at hand and write its file; without ``output`` it is named after the device."""
    check_device(device)
    clock = SystemClock()
    workbench = torch_workbench(device, clock)
    sensor = open_sensor(meter, workbench.device)
    try:
        return calibrate_into(
            output, workbench, sensor, clock, budget_s=budget_s, seed=seed, progress=progress
        )
    finally:
        sensor.close()


def calibrate_into(
    output: Path | None,
    workbench: Workbench,
    meter: Meter,
    clock: Clock,
    *,
    budget_s: float,
    seed: int,
    progress: Progress,
) -> tuple[Path, Calibration]:
    """The same with a workbench and a meter that are open. What ends early leaves its readings beside."""
    path = file_named(workbench.facts().name) if output is None else output
    if path.suffix != SUFFIX:
        raise MagnetonError(
            f"a device file ends in {SUFFIX}, not {path.name!r}", hint=f"--output {path.stem}{SUFFIX}"
        )
    shipped = {name: read_model(name) for name in device_names()}
    kept = _Kept(path)
    with reserve(path, room_bytes=ROOM_BYTES) as place:
        try:
            calibration = calibrate(
                workbench, meter, clock, shipped,
                budget_s=budget_s, seed=seed, progress=progress, keep=kept.keep,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise Interrupted("stopped; no device file was written", hint=kept.hint()) from None
        except MagnetonError as error:
            if kept.path is not None:
                error.hint += f"; {kept.hint()}"
            raise
        place.write(device_file(calibration))
    return path, calibration


def file_named(device: str) -> Path:
    """``nvidia-h200.toml`` in the folder where the command is run."""
    plain = "".join(c if c.isascii() and c.isalnum() else " " for c in device.casefold())
    return Path("-".join(plain.split()) + SUFFIX) if plain.strip() else Path(f"device{SUFFIX}")


class _Kept:
    """Whether readings were put aside, and where."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._count = 0
        self.path: Path | None = None

    def keep(self, readings: Readings) -> None:
        self.path = keep_readings(readings, self._output)
        self._count = len(readings.trials)

    def hint(self) -> str:
        if self.path is None:
            return "nothing had been measured"
        return f"the {self._count} windows that were measured lie in {self.path}"
