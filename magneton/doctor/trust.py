"""What figures from this machine are worth, in sentences."""

from collections.abc import Iterator, Sequence

from magneton.doctor.model import Check, Conditions
from magneton.meters.board_state import DISTURBING
from magneton.meters.probe import AGREE

COUNTED = "counted: exact and the same on every machine, and silent on how well the work is done"
MODELLED = "modelled: ratios of CPU time of one thread; joules only within a factor of two"
MODELLED_DEVICE = (
    "modelled:DEVICE: which side would spend more on that device, where intervals do not overlap; no joules"
)
CALIBRATED = "modelled:FILE.toml: the same for the very device here, once magneton calibrate has fitted it"


def sentences(sensors: Sequence[Check], models: Sequence[Check], *, busy: bool) -> tuple[str, ...]:
    """From the most to the least that can be said."""
    return tuple(_sentences(sensors, models, busy=busy))


def _sentences(sensors: Sequence[Check], models: Sequence[Check], *, busy: bool) -> Iterator[str]:
    ready = [sensor for sensor in sensors if sensor.state == "ok" and sensor.name != "cpu clock"]
    boards = [sensor for sensor in ready if sensor.probe is not None]
    rapl = [sensor for sensor in ready if sensor.name == "rapl"]
    zeus = [sensor for sensor in ready if sensor.name == "zeus"]
    if not boards and not rapl and not zeus:
        yield "measured: nothing, there is no sensor that may be read"
    yield from map(_of_board, boards)
    for sensor in rapl:
        yield (
            f"rapl: the processors as a whole, neighbours included; joules within {_percent(sensor.gain)}, "
            f"in windows of {sensor.shortest_window_s:.2g} s or more"
        )
    for sensor in zeus:
        yield f"zeus: {sensor.reads}; in windows of {sensor.shortest_window_s:g} s or more"
    if boards:
        read = "by rapl" if rapl else "CPU time times an assumed power, as no counter of it may be read"
        yield f"the host, told beside a board: {read}"
    yield f"{MODELLED}{'; nothing of what a board spends' if boards else ''}"
    if any(model.state == "ok" for model in models):
        yield MODELLED_DEVICE
    if boards or rapl or zeus:
        yield CALIBRATED
    yield COUNTED
    if busy:
        yield "now: this machine is busy, so that intervals will be wide and wall-clock times mean little"


def _of_board(sensor: Check) -> str:
    probe, now = sensor.probe, sensor.now
    held = f"windows of {sensor.shortest_window_s:.2g} s or more"
    joules = f"joules within {_percent(sensor.gain)}"
    if probe is not None and probe.agreement is not None and abs(probe.agreement - 1) > AGREE:
        joules = f"no joules (power is {probe.agreement:.2f} of what the counter says)"
    text = f"{sensor.name}: ratios on one board, {joules}, in {held}"
    against = () if now is None else tuple(_against(now))
    return f"{text}; not now: {' and '.join(against)}" if against else text


def _against(now: Conditions) -> Iterator[str]:
    """What would make the meter reject a window."""
    if held := sorted(set(now.throttle) & DISTURBING):
        yield f"clocks are held down ({', '.join(held)})"
    if now.processes:
        yield "others compute on it"


def _percent(gain: float | None) -> str:
    return "an unknown factor" if gain is None else f"{gain * 100:.0f} %"
