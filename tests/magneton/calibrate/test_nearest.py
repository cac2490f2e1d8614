"""The shipped device that is most like another one."""

from dataclasses import replace

import pytest
from planted_device import FACTS

from magneton.calibrate.nearest import kind_of_shipped, nearest_device
from magneton.meters.devices import device_names, read_model

SHIPPED = {name: read_model(name) for name in device_names()}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("AMD EPYC 9534 64-Core Processor", "epyc9534"),
        ("Intel(R) Xeon(R) Platinum 8480+", "xeon8480"),
    ],
)
def test_by_its_name(name: str, nearest: str) -> None:
    facts = replace(FACTS, name=name, kind=kind_of_shipped(nearest))

    assert nearest_device(facts, {}, SHIPPED) == nearest


@pytest.mark.parametrize("name", SHIPPED)
def test_by_its_rates_where_the_name_says_nothing(name: str) -> None:
    """At 0.9 of what a device's file says, in everything that a calibration measures."""
    rates = {
        each: 0.9 * coefficient.value
        for each, coefficient in SHIPPED[name].coefficients()
        if each == "memory_bytes_per_s" or each.endswith("flop_per_s")
    }

    facts = replace(FACTS, name="a device", kind=kind_of_shipped(name))

    assert nearest_device(facts, rates, SHIPPED) == name


def test_a_slow_processor_is_nearest_to_a_processor() -> None:
    rates = {"memory_bytes_per_s": 7e9, "vector float32 flop_per_s": 45e9, "matrix bfloat16 flop_per_s": 3e11}

    nearest = nearest_device(replace(FACTS, name="a laptop", kind="cpu"), rates, SHIPPED)

    assert nearest in ("epyc9534", "xeon8480")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_device_is_known_as_a_board_or_a_processor(name: str) -> None:
    is_board = SHIPPED[name].name.startswith(("NVIDIA", "AMD Instinct"))

    assert kind_of_shipped(name) == ("cuda" if is_board else "cpu")
