"""The simulated NVML, compiled when it is needed, and how a process is started with it."""

import os
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory, gettempdir

from simulated_faults import Fault
from simulated_shapes import Board, settings_text

SONAME = "libnvidia-ml.so.1"
_SUPPORT = Path(__file__).parent
_SOURCES = _SUPPORT.parent / "simulated_nvml"
_FLAGS = ("-std=gnu11", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")


def compiler() -> str | None:
    """None: tests that need the library skip."""
    return which("gcc") if sys.platform == "linux" else None


def build_library() -> Path:
    """The library, in a folder that the loader can be pointed at; built once per state of its sources."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("gcc on Linux, which builds the simulated NVML")
    sources = sorted(_SOURCES.glob("*.[ch]"))
    state = sha256(" ".join(_FLAGS).encode())
    for source in sources:
        state.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = Path(gettempdir()) / f"simulated-nvml-{os.getuid()}-{state.hexdigest()[:16]}"
    library = folder / SONAME
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else, and what is in it would be loaded")
    if not library.exists():
        with TemporaryDirectory(dir=folder) as aside:
            built = Path(aside) / SONAME
            inputs = [str(source) for source in sources if source.suffix == ".c"]
            linked = (f"-Wl,-soname,{SONAME}", "-lm", "-lpthread")
            subprocess.run([found, *_FLAGS, *inputs, "-o", str(built), *linked], check=True)
            built.rename(library)
    return library


def environment(
    library: Path,
    boards: Iterable[Board] = (),
    *,
    faults: Iterable[Fault] = (),
    real_time: bool = False,
    seed: int = 0,
    state_file: Path | None = None,
) -> dict[str, str]:
    """This process's environment with the library in it, for a process to be started.

    It sees ``boards`` even if it only loads NVML. Processes with the same ``state_file`` see the same boards,
    set up by the first of them: use ``real_time`` then, for virtual time passes in one process.
    """
    lines = [settings_text(boards, real_time=real_time, seed=seed, call_s=0 if real_time else 1e-5)]
    lines += [fault.text() for fault in faults]
    paths = [str(library.parent), os.environ.get("LD_LIBRARY_PATH", "")]
    modules = [str(_SUPPORT), str(_SUPPORT.parents[1] / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    found = os.environ | {
        "LD_LIBRARY_PATH": os.pathsep.join(path for path in paths if path),
        "PYTHONPATH": os.pathsep.join(path for path in modules if path),
        "SIMULATED_NVML_SETTINGS": "\n".join(lines),
    }
    found.pop("SIMULATED_NVML_STATE", None)
    return found if state_file is None else found | {"SIMULATED_NVML_STATE": str(state_file)}
