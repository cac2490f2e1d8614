"""Zeus: whether it is installed, and which sensors it adds to those that magneton reads by itself.

Importing it takes seconds and starts processes, so it is asked only where there is a trace of something that
it alone can read: AMD's boards, Apple's and NVIDIA's systems on a chip, its own daemon.
"""

from magneton.doctor.model import Check
from magneton.doctor.surroundings import Surroundings
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.zeus_sensors import ZEUSD

AMD_BOARDS = "boards of AMD"


def look_at_zeus(around: Surroundings) -> Check:
    version = around.version("zeus")
    traces = _traces(around)
    found = f"; this machine has {', '.join(traces)}" if traces else ""
    if version is None:
        return Check(
            name="zeus",
            state="absent",
            detail=f"not installed; it reads boards of AMD, Apple's chips and Jetson{found}",
            advice="pip install 'magneton[zeus]'" if traces else "",
        )
    if around.version("zeus-ml") is not None:
        return Check(
            name="zeus",
            state="unusable",
            detail="zeus and zeus-ml, its old name, are both installed and overwrite each other",
            advice="pip uninstall zeus-ml zeus, then pip install 'magneton[zeus]'",
        )
    if not traces:
        return Check(
            name="zeus",
            state="absent",
            detail=f"zeus {version}; no trace of what it alone reads (boards of AMD, Apple, Jetson, zeusd)",
        )
    return _asked(around, version, traces)


def _asked(around: Surroundings, version: str, traces: tuple[str, ...]) -> Check:
    """Zeus itself, about what there are traces of."""
    around.say("asking zeus what it sees: some 3 s")
    try:
        meter = around.open_zeus("cuda:0" if AMD_BOARDS in traces else "cpu")
    except (SensorAbsent, SensorUnusable) as error:
        return Check(
            name="zeus",
            state="unusable",
            detail=f"zeus {version}; {', '.join(traces)} found, and yet: {error}",
            advice=error.hint,
        )
    try:
        info = meter.info()
        return Check(
            name="zeus",
            state="ok",
            detail=f"zeus {version}; {', '.join(traces)}",
            advice="ask for it: --meter zeus",
            reads=info.source,
            shortest_window_s=meter.shortest_window_s,
            gain=info.scale_high - 1,
        )
    finally:
        meter.close()


def _traces(around: Surroundings) -> tuple[str, ...]:
    """Of what Zeus reads and magneton does not, without loading anything."""
    daemon = next((name for name in ZEUSD if name in around.environment), None)
    found = {
        AMD_BOARDS: (around.devices / "kfd").exists(),
        "an Apple chip": around.operating_system == ("darwin", "arm64"),
        "a Jetson": around.jetson.exists(),
        f"zeusd ({daemon})": daemon is not None,
    }
    return tuple(trace for trace, present in found.items() if present)
