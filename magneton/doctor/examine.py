"""The whole look at a machine."""

from collections.abc import Sequence

from magneton.doctor.boards import look_at_boards
from magneton.doctor.model import Check, Diagnosis
from magneton.doctor.models import look_at_models
from magneton.doctor.place import is_busy, look_at_machine, look_at_packages
from magneton.doctor.processors import look_at_cpu_clock, look_at_rapl
from magneton.doctor.selection import NAME as CUDA_DEVICES
from magneton.doctor.surroundings import Surroundings
from magneton.doctor.trust import sentences
from magneton.doctor.zeus import look_at_zeus
from magneton.meters.registry import SENSORS


def examine(surroundings: Surroundings | None = None, *, fresh: bool = False) -> Diagnosis:
    """Look at this machine's sensors, processor, packages and cache folder; nothing is changed.

    A board's sensors are watched for some seconds once, and again if ``fresh``; what was found is kept.
    """
    around = Surroundings() if surroundings is None else surroundings
    boards = look_at_boards(around, fresh=fresh)
    sensors = (*boards, look_at_rapl(around), look_at_zeus(around), look_at_cpu_clock())
    models = look_at_models()
    meters = _automatic(sensors)
    return Diagnosis(
        machine=look_at_machine(around),
        sensors=sensors,
        models=models,
        packages=look_at_packages(around),
        meter=meters.get("cuda", meters["cpu"]),
        meters=meters,
        trust=sentences(sensors, models, busy=is_busy(around.load_1min())),
    )


def _automatic(sensors: Sequence[Check]) -> dict[str, str]:
    """What ``--meter auto`` takes: the one sensor of a kind of device, if it can be read."""
    states = {sensor.name: sensor.state for sensor in sensors}
    ready = {sensor.name.partition(",")[0] for sensor in sensors if sensor.state == "ok"}
    taken = {"cpu": SENSORS["cpu"] if SENSORS["cpu"] in ready else "modelled"}
    if CUDA_DEVICES in states:
        found = states[CUDA_DEVICES] == "ok" and SENSORS["cuda"] in ready
        taken["cuda"] = SENSORS["cuda"] if found else "modelled"
    return taken
