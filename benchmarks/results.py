"""Results of benchmarks: one JSON file each, with where its figures come from."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from magneton import __version__
from magneton.profile.origin import Origin

FOLDER = Path(__file__).parent / "results"


def write_result(name: str, figures: Mapping[str, object], origin: Origin) -> Path:
    """Write ``figures`` to results/NAME.json beside the script, the model and the machine that made them."""
    FOLDER.mkdir(exist_ok=True)
    place = FOLDER / f"{name}.json"
    made_by = {
        "script": f"benchmarks/{name}.py",
        "magneton": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "device": origin.device,
        "system": origin.system,
        "options": dict(origin.options),
        "versions": dict(origin.versions),
        "model": origin.model,
        "meter": origin.meter.name,
        "provenance": origin.meter.provenance.value,
        "threads": origin.threads,
    }
    place.write_text(json.dumps({"made_by": made_by, **figures}, indent=2) + "\n", encoding="utf-8")
    return place
