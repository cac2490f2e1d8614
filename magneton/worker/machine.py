"""What this machine is called, as its own drivers say it."""

import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CPUINFO = Path("/proc/cpuinfo")


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


def processor_name(cpuinfo: Path = CPUINFO) -> str:
    """As the kernel tells it, else as Python does."""
    with suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            name, _, words = line.partition(":")
            if name.strip() in ("model name", "Model", "cpu model"):
                return " ".join(words.split())
    return platform.processor() or platform.machine()


def _accelerator(device: str) -> str:
    """Asked of the framework that is loaded: it alone knows how visible devices are numbered."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return device
