"""Device files: the shipped ones hold together, and what is wrong in one is named with its file and key."""

from pathlib import Path

import pytest

from magneton.configs import LARGEST_BYTES, config_path
from magneton.errors import MagnetonError
from magneton.meters.devices import device_names, read_device, read_model

TEXT = config_path("devices", "h200").read_text()
NAMES = ("a100", "epyc9534", "h100", "h200", "rtx4090", "v100", "xeon8480")


def test_these_devices_ship() -> None:
    assert device_names() == NAMES
    assert read_device("cpu").core_power_w.value == 5.0


@pytest.mark.parametrize("name", NAMES)
def test_every_coefficient_has_a_source_and_the_range_that_it_admits(name: str) -> None:
    model = read_model(name)

    for what, coefficient in model.coefficients():
        assert len(coefficient.source) > 10, what
        if what != "tdp_w":
            assert coefficient.high / coefficient.low > 1.2, what


def test_figures_are_in_si_units() -> None:
    model = read_model("h200")
    units = {unit.name(): unit for unit in model.units}

    assert model.memory_bytes_per_s.value == pytest.approx(4.8e12)
    assert model.memory_j_per_byte.value == pytest.approx(140e-12)
    assert model.shortest_kernel_s.value == pytest.approx(2.5e-6)
    assert model.cache_bytes.value == pytest.approx(50e6)
    assert units["matrix bfloat16"].flop_per_s.value == pytest.approx(989e12)
    assert units["matrix bfloat16"].j_per_flop.value == pytest.approx(0.52e-12)


def test_a_file_of_the_users_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TEXT)

    assert read_model(str(tmp_path / "mine.toml")) == read_model("h200")


def edited(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (edited("[constant_power_w]", "[constant_power]"), "unknown key 'constant_power'"),
        (edited("value = 75.0\n", ""), "constant_power_w: key 'value' is missing"),
        (edited("value = 75.0", "value = -75.0"), "constant_power_w: need 0 < low <= value <= high"),
        (edited("value = 75.0", "value = nan"), "constant_power_w: need 0 < low <= value <= high"),
        (edited("value = 75.0", "value = true"), "constant_power_w: value must be a number"),
        (edited("high = 95.0", "high = inf"), "constant_power_w: need 0 < low <= value <= high"),
        (edited("low = 54.0", "low = 80.0"), "constant_power_w: need 0 < low <= value <= high"),
        (edited("high = 95.0", "high = 95.0\nhihg = 1.0"), "constant_power_w: unknown key 'hihg'"),
        (edited("value = 67.0", "value = 0.0"), "units[0]: peak_tflop_per_s: need 0 < low"),
        (edited('arithmetic = "tf32"', 'arithmetic = "tf23"'), "units[3]: arithmetic: unknown value 'tf23'"),
        (edited('arithmetic = "float64"', 'arithmetic = "float32"'), "'vector float32' is given twice"),
        ("[", "not valid TOML"),
        ('name = "x"', "key 'constant_power_w' is missing"),
        ("#" * (LARGEST_BYTES + 1), "larger than"),
    ],
    ids=range(14),
)
def test_what_is_wrong_is_named_with_its_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)

    with pytest.raises(MagnetonError) as refused:
        read_model(str(path))

    assert str(path) in str(refused.value)
    assert message in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["missing.toml", "folder.toml"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()

    with pytest.raises(MagnetonError, match=name):
        read_model(str(tmp_path / name))


def test_the_file_of_a_core_is_no_device(tmp_path: Path) -> None:
    with pytest.raises(MagnetonError, match="unknown key 'core_power_w'"):
        read_model(str(config_path("devices", "cpu")))
