"""From a name to a meter; a name that is not one gets the nearest that is."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from magneton.configs import config_path
from magneton.errors import MagnetonError
from magneton.meters.counted import CountedMeter
from magneton.meters.meter import Meter
from magneton.meters.modelled import ModelledMeter
from magneton.meters.registry import automatic_meter, check_meter, meter_names, open_meter, require_meter
from magneton.meters.sensors import SensorAbsent, SensorUnusable


@pytest.mark.parametrize(
    ("spec", "name", "unit"),
    [
        ("modelled", "modelled", "J"),
        ("modelled:cpu", "modelled", "J"),
        ("counted", "counted:bytes", "B"),
        ("counted:flops", "counted:flops", "FLOP"),
        ("counted:operators", "counted:operators", "operators"),
    ],
)
def test_a_name_opens_its_meter(spec: str, name: str, unit: str) -> None:
    meter = open_meter(spec, "cpu")

    assert (meter.info().name, meter.info().unit) == (name, unit)
    meter.close()


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("modeled", "did you mean 'modelled'?"),
        ("nvlm", "did you mean 'nvml'?"),
        ("counted:byte", "did you mean 'bytes'?"),
        ("counted:mine.toml", "valid: bytes, flops, operators"),
        ("modelled:h20", "did you mean 'h200'?"),
        ("modelled:a1000", "FILE.toml"),
        ("counted:", "valid: bytes, flops, operators"),
        ("nvml:fast", "use --meter nvml"),
        ("rapl:dram", "use --meter rapl"),
        ("rappl", "did you mean 'rapl'?"),
        ("auto:x", "use --meter auto"),
        ("", "valid: auto, counted"),
    ],
)
def test_what_is_no_meter_gets_the_nearest_name(spec: str, hint: str) -> None:
    with pytest.raises(MagnetonError) as refused:
        open_meter(spec, "cpu")
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "spec", ["modelled", "modelled:cpu", "counted:flops", "auto", "nvml", "rapl", "zeus"]
)
def test_what_is_a_meter_is_let_through(spec: str) -> None:
    require_meter(spec)


@pytest.mark.parametrize("spec", ["modeled", "counted:byte", "modelled:h2000", "rapl:dram", "auto:x", ""])
def test_what_is_no_meter_is_refused_before_anything_is_opened(spec: str) -> None:
    with pytest.raises(MagnetonError) as refused:
        require_meter(spec)
    assert not isinstance(refused.value, SensorAbsent | SensorUnusable)


@pytest.mark.parametrize(
    ("was", "instead", "named"),
    [
        ("[tdp_w]", "[tpd_w]", "unknown key 'tpd_w'"),
        ("[constant_power_w]\nvalue = ", "[constant_power_w]\nvalue = -", "constant_power_w"),
        ("[memory_pj_per_byte]\nvalue", "[memory_pj_per_byte]\nworth", "worth"),
    ],
)
def test_a_device_file_that_will_not_do_is_refused_before_anything_is_opened(
    tmp_path: Path, was: str, instead: str, named: str
) -> None:
    sound = config_path("devices", "h200").read_text()
    mine = tmp_path / "mine.toml"
    mine.write_text(sound)
    require_meter(f"modelled:{mine}")
    assert sound.count(was) == 1
    mine.write_text(sound.replace(was, instead))

    with pytest.raises(MagnetonError, match=named) as refused:
        require_meter(f"modelled:{mine}")
    assert str(mine) in str(refused.value)


def test_a_device_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(MagnetonError, match=r"cannot read nowhere\.toml"):
        require_meter("modelled:nowhere.toml")


@pytest.mark.parametrize("spec", ["auto", "modelled", "modelled:h200", "counted:flops"])
def test_what_needs_no_sensor_needs_no_look_at_one(spec: str) -> None:
    check_meter(spec, "cuda:0")


def test_a_sensor_of_another_kind_of_device_is_refused_before_a_system_is_loaded() -> None:
    with pytest.raises(SensorAbsent, match="RAPL reads processors, and the work runs on cuda:0"):
        check_meter("rapl", "cuda:0")


@dataclass(slots=True)
class Machine:
    """Opens meters in its own way: ``works`` can be read, whatever else is asked for has ``problem``."""

    works: tuple[str, ...] = ()
    problem: type[MagnetonError] = SensorAbsent
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def open_named(self, name: str, device: str) -> Meter:
        self.asked.append((name, device))
        if name == "modelled":
            return ModelledMeter.open("cpu", device)
        if name not in self.works:
            raise self.problem(f"{name} cannot be read", hint="see doctor")
        return CountedMeter()


@pytest.mark.parametrize("problem", [SensorAbsent, SensorUnusable])
@pytest.mark.parametrize(("device", "sensor"), [("cpu", "rapl"), ("cuda:1", "nvml")])
def test_auto_models_where_the_sensor_cannot_be_read(
    device: str, sensor: str, problem: type[MagnetonError]
) -> None:
    machine = Machine(problem=problem)

    meter = automatic_meter(device, machine.open_named)

    assert isinstance(meter, ModelledMeter)
    assert machine.asked == [(sensor, device), ("modelled", device)]


@pytest.mark.parametrize(("device", "sensor"), [("cpu", "rapl"), ("cuda:1", "nvml"), ("cuda", "nvml")])
def test_auto_reads_the_device_that_the_work_runs_on(device: str, sensor: str) -> None:
    machine = Machine(works=("rapl", "nvml", "zeus"))

    assert isinstance(automatic_meter(device, machine.open_named), CountedMeter)
    assert machine.asked == [(sensor, device)]


def test_auto_never_takes_a_meter_that_has_to_be_asked_for() -> None:
    machine = Machine(works=("zeus", "rapl"))

    assert isinstance(automatic_meter("cuda:0", machine.open_named), ModelledMeter)


def test_auto_hides_no_other_error() -> None:
    with pytest.raises(MagnetonError, match="rapl cannot be read"):
        automatic_meter("cpu", Machine(problem=MagnetonError).open_named)


def test_the_names_hold_every_shipped_meter() -> None:
    assert {"auto", "modelled", "counted", "nvml", "rapl", "zeus"} <= set(meter_names())
