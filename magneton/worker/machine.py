"""What this machine is called, as its own drivers say it."""

import sys
from contextlib import suppress
from typing import Any

from magneton.processor import processor_name


def device_name(device: str) -> str:
    """The processor's or the accelerator's own name; the generic one where it does not tell."""
    return processor_name() if device == "cpu" else _accelerator(device)


def driver_version(device: str) -> str:
    """The accelerator's driver; "" where there is none or it cannot be asked."""
    if device == "cpu":
        return ""
    try:
        import pynvml
    except ImportError:
        return ""
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    return ""


def _accelerator(device: str) -> str:
    """Asked of the framework that is loaded: it alone knows how visible devices are numbered."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and device.startswith("cuda") and torch.cuda.is_available():
        return str(torch.cuda.get_device_name(device))
    return device
