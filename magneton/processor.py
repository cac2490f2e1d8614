"""What this machine's processor is called."""

import platform
from contextlib import suppress
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def processor_name(cpuinfo: Path = CPUINFO) -> str:
    """As the kernel tells it, else as Python does."""
    with suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            name, _, words = line.partition(":")
            if name.strip() in ("model name", "Model", "cpu model"):
                return " ".join(words.split())
    return platform.processor() or platform.machine()
