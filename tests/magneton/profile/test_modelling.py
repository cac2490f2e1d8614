"""Joules of a device from counts: plausible figures, the right unit, and errors that cancel."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import modelled_devices
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from modelled_work import Call, addition, copy, product, profile_of
from profiles import a_coefficient, devices

from magneton.meters.devices import device_names, read_model
from magneton.profile.device import Coefficient, DeviceModel
from magneton.profile.modelling import DRAWS, modelled_j, unit_of

A100 = read_model("a100")
TF32 = {"torch.backends.cuda.matmul.allow_tf32": "True"}
SHIPPED = device_names()
EXPECTED = (0.7987873, 1.2695284, 1.1653345, 0.7288103)


def certain(device: DeviceModel) -> DeviceModel:
    """The same device with no doubt about its coefficients."""

    def pinned(one: Coefficient) -> Coefficient:
        return replace(one, low=one.value, high=one.value)

    known: dict[str, Any] = {
        each.name: pinned(getattr(device, each.name))
        for each in fields(device)
        if isinstance(getattr(device, each.name), Coefficient)
    }
    units = tuple(
        replace(unit, flop_per_s=pinned(unit.flop_per_s), j_per_flop=pinned(unit.j_per_flop))
        for unit in device.units
    )
    return replace(device, units=units, **known)


# What copying costs it is the energy of a byte, and as good as nothing else.
ONE_COEFFICIENT = replace(
    certain(A100),
    memory_j_per_byte=a_coefficient(60e-12, 100e-12, 400e-12),
    constant_power_w=a_coefficient(1e-9, 1e-9, 1e-9),
    tdp_w=a_coefficient(1e9, 1e9, 1e9),
)


def energy_j(call: Call, device: DeviceModel = A100, **origin: Any) -> np.ndarray:
    """[DRAWS] of one operator."""
    return modelled_j(profile_of([call], **origin), device)[:, 0]


def unit_name(call: Call, device: DeviceModel = A100, **origin: Any) -> str:
    profile = profile_of([call], **origin)
    return device.units[unit_of(profile.operators[0], profile, device.units)].name()


# --- figures ------------------------------------------------------------------------------------------------


def test_a_large_product_on_an_a100_costs_what_its_tensor_cores_and_0_44_ms_at_peak_do() -> None:
    """54 W for 0.44 ms are 24 mJ, 137 GFLOP at 0.7 pJ are 96 mJ, 101 MB at 155 pJ are 16 mJ: 308 W."""
    spent_j = energy_j(product(4096), certain(A100))

    assert float(spent_j.mean()) == pytest.approx(
        54 * 0.44e-3 + 0.7e-12 * 2 * 4096**3 + 155e-12 * 3 * 2**25, 0.01
    )
    assert 0.130 < float(energy_j(product(4096)).mean()) < 0.160


def test_a_large_addition_on_an_a100_costs_its_bytes() -> None:
    """155 pJ for moving a byte, 35 pJ of constant power meanwhile, a twelfth of 14 pJ for arithmetic."""
    call = addition(1 << 28)

    per_byte_pj = float(energy_j(call, certain(A100)).mean()) / call.size_bytes() * 1e12

    assert per_byte_pj == pytest.approx(155 + 54 / 1.555 + 14 / 12, rel=0.01)


def test_what_fits_into_the_cache_costs_between_its_figure_and_that_of_memory() -> None:
    call = copy(1 << 20)  # 8 MB
    constant_j = 54 * call.size_bytes() / 1555e9

    per_byte_pj = (energy_j(call, certain(A100)) - constant_j) / call.size_bytes() * 1e12

    assert 50 < float(per_byte_pj.mean()) < 155
    assert float(per_byte_pj.max() / per_byte_pj.min()) > 2


def test_the_smallest_kernel_costs_its_time() -> None:
    assert float(energy_j(addition(1), certain(A100)).mean()) == pytest.approx(54 * 2.5e-6, rel=0.01)


@pytest.mark.parametrize(
    "changes", [{"effect": "view"}, {"effect": "alloc"}, {"flops": 0, "bytes_moved": 0}], ids=str
)
def test_what_launches_nothing_costs_nothing(changes: dict[str, Any]) -> None:
    assert (energy_j(replace(copy(1 << 20), changes=changes)) == 0).all()


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize(
    "call", [product(4096), product(2048, dtype="float64"), addition(1 << 28), copy(1000)]
)
def test_no_draw_is_above_tdp(name: str, call: Call) -> None:
    """Time is at most what the slowest of the three takes at the lowest rate that is possible."""
    device = read_model(name)
    unit = next(unit for unit in device.units if unit.name() == unit_name(call, device))
    longest_s = max(
        call.flops / unit.flop_per_s.low,
        call.size_bytes() / device.memory_bytes_per_s.low,
        device.shortest_kernel_s.high,
    )

    assert float(energy_j(call, device).max()) <= device.tdp_w.high * longest_s


@pytest.mark.parametrize("name", SHIPPED)
def test_work_at_full_rate_draws_between_constant_power_and_tdp(name: str) -> None:
    device = certain(read_model(name))
    streamed, seconds = addition(1 << 28), (1 << 28) * 12 / device.memory_bytes_per_s.value

    power_w = float(energy_j(streamed, device).mean()) / seconds

    assert 1.2 * device.constant_power_w.value < power_w <= device.tdp_w.value


@given(st.integers(2, 50))
def test_k_times_the_work_is_k_times_the_energy(k: int) -> None:
    for call in (product(4096), addition(1 << 28)):
        more = replace(call, changes={"flops": k * call.flops, "bytes_moved": k * call.size_bytes()})

        np.testing.assert_allclose(energy_j(more), k * energy_j(call), rtol=1e-9)


def test_the_table_in_the_documentation_is_what_the_models_say() -> None:
    text = (Path(__file__).parents[3] / "docs" / "measuring.md").read_text(encoding="utf-8")

    assert "\n".join(modelled_devices.rows()) in text


# --- which unit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "flags", "unit"),
    [
        (product(64), {}, "matrix bfloat16"),
        (product(64, dtype="float16"), {}, "matrix float16"),
        (product(64, dtype="float32"), {}, "vector float32"),
        (product(64, dtype="float32"), TF32, "matrix tf32"),
        (product(64, dtype="float32"), {**TF32, "env.NVIDIA_TF32_OVERRIDE": "0"}, "vector float32"),
        (product(64, dtype="float32"), {"env.NVIDIA_TF32_OVERRIDE": "1"}, "matrix tf32"),
        (product(64, dtype="float64"), {}, "matrix float64"),
        (product(64, dtype="int8"), {}, "matrix int8"),
        (product(64, dtype="float8_e4m3fn"), {}, "matrix float16"),  # an A100 has none for eight bits
        (product(1, m=64, k=64), {}, "matrix bfloat16"),  # a matrix times a vector
        (product(64, m=64, k=1), {}, "matrix bfloat16"),  # an outer product
        (addition(64, dtype="bfloat16"), {}, "vector float32"),
        (addition(64, dtype="float32"), TF32, "vector float32"),
        (addition(64, dtype="float64"), {}, "vector float64"),
        (copy(64), {}, "vector float32"),
    ],
)
def test_contractions_run_on_the_matrix_units_of_their_format(
    call: Call, flags: dict[str, str], unit: str
) -> None:
    assert unit_name(call, flags=flags) == unit


def test_convolutions_follow_the_flag_of_their_own_library() -> None:
    convolution = product(64, dtype="float32", name="aten.convolution.default")

    assert unit_name(convolution, flags=TF32) == "vector float32"
    assert unit_name(convolution, flags={"torch.backends.cudnn.allow_tf32": "True"}) == "matrix tf32"


def test_a_format_that_a_device_lacks_is_computed_in_float32() -> None:
    assert unit_name(product(64), read_model("v100")) == "vector float32"
    assert unit_name(product(64, dtype="float32"), read_model("epyc9534"), flags=TF32) == "vector float32"


def test_weights_of_few_bits_are_computed_in_the_format_of_the_activations() -> None:
    profile = profile_of([product(64)])
    packed = replace(profile.values[1], dtype="int32", shape=(640, 640))
    profile = replace(profile, values=(profile.values[0], packed, profile.values[2]))

    chosen = unit_of(replace(profile.operators[0], flops=2 * 640**2 + 2), profile, A100.units)

    assert A100.units[chosen].name() == "matrix bfloat16"


# --- draws --------------------------------------------------------------------------------------------------


def test_draws_are_the_same_every_time_and_for_every_operator() -> None:
    one = modelled_j(profile_of([product(512), addition(99)]), A100)
    other = modelled_j(profile_of([addition(99), copy(7), product(512)]), A100)

    assert one.shape == (DRAWS, 2)
    assert (one[:, 0] == other[:, 2]).all()
    assert (one[:, 1] == other[:, 0]).all()


def test_draws_do_not_change_between_releases() -> None:
    """Profiles are compared years later: a draw must stay what it was."""
    call = copy(1 << 28)
    relative = energy_j(call, ONE_COEFFICIENT) / (100e-12 * call.size_bytes())

    np.testing.assert_allclose(relative[[0, 1, 100, 199]], EXPECTED, rtol=1e-6)


def test_half_of_the_draws_lie_on_either_side_of_the_value_and_none_beyond_the_range() -> None:
    call = copy(1 << 28)
    relative = energy_j(call, ONE_COEFFICIENT) / energy_j(call, certain(ONE_COEFFICIENT))

    assert 0.45 < float((relative < 1).mean()) < 0.55
    assert 0.6 <= float(relative.min()) < 0.7
    assert 3.0 < float(relative.max()) <= 4.0


def test_a_byte_from_memory_is_never_cheaper_than_one_from_the_cache() -> None:
    """Where ranges overlap, draws of their own would have it so."""
    overlapping = replace(
        certain(ONE_COEFFICIENT),
        memory_j_per_byte=a_coefficient(1e-12, 20e-12, 20e-12),
        cache_j_per_byte=a_coefficient(1e-12, 20e-12, 20e-12),
    )
    small, large = (replace(overlapping, cache_bytes=a_coefficient(n, n, n)) for n in (1.0, 1e12))

    assert (energy_j(copy(1 << 20), small) >= energy_j(copy(1 << 20), large)).all()


@given(devices(), st.floats(1.05, 3), st.data())
@settings(max_examples=60)
def test_energy_follows_each_coefficient_in_its_direction(
    device: DeviceModel, k: float, data: st.DataObject
) -> None:
    """More power and dearer operations cost more; faster units and larger caches cost less."""
    device = replace(
        device, tdp_w=device.tdp_w.times(3), memory_j_per_byte=device.memory_j_per_byte.times(3)
    )  # room for what has to stay below them
    name = data.draw(st.sampled_from([name for name, _ in device.coefficients()]))
    call = Call(name="aten.add.Tensor", read=((50,),), made=(50,), flops=50)

    before, after = energy_j(call, device), energy_j(call, with_times(device, name, k))

    slack = 1e-9 * before
    falls = name.endswith(("per_s", "cache_bytes"))
    assert (after <= before + slack).all() if falls else (after >= before - slack).all()


def with_times(device: DeviceModel, name: str, k: float) -> DeviceModel:
    """``device`` with one coefficient times ``k``."""
    if hasattr(device, name):
        changes: dict[str, Any] = {name: getattr(device, name).times(k)}
        return replace(device, **changes)
    owner, _, figure = name.rpartition(" ")
    units = tuple(
        replace(unit, **{figure: getattr(unit, figure).times(k)}) if unit.name() == owner else unit
        for unit in device.units
    )
    return replace(device, units=units)
