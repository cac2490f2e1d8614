"""What tests read of NVML through the real bindings, in SI units."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pynvml
from simulated_board import A100, Board, Simulation

STILL = replace(A100, leakage_w_per_c=0.0, rise_s=0.0)  # draws exactly what is programmed


def opened(*boards: Board, call_s: float = 0.0, seed: int = 0) -> tuple[Simulation, list[Any]]:
    simulation = Simulation(boards, call_s=call_s, seed=seed)
    pynvml.nvmlInit()
    return simulation, [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(len(boards))]


def code_of(function: Callable[..., Any], *arguments: Any) -> int:
    """What NVML answers: 0, or the code of its error."""
    try:
        function(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)  # pyright: ignore[reportAttributeAccessIssue] - set in __new__
    return 0


def counter_j(handle: Any) -> float:
    return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) * 1e-3


def field(handle: Any, number: int, scope: int = 0) -> tuple[int, int]:
    """The code and the raw value of one field."""
    (found,) = pynvml.nvmlDeviceGetFieldValues(handle, [(number, scope)])
    return int(found.nvmlReturn), int(found.value.ullVal if number in {83, 191} else found.value.uiVal)
