"""Which shipped device is most like the one at hand, to take from it what could not be fitted.

One of its kind: by name where the name says it, else by how fast memory and arithmetic are, which every
calibration measures.
"""

import math
import re
from collections.abc import Mapping

from magneton.calibrate.workbench import DeviceFacts
from magneton.profile.device import DeviceModel
from magneton.system import Kind

PROCESSORS = ("epyc", "xeon")  # families; all other files in configs/devices are boards


def nearest_device(facts: DeviceFacts, rates: Mapping[str, float], shipped: Mapping[str, DeviceModel]) -> str:
    """The name of a shipped device; ``rates`` are bandwidth and peaks, by their names in the model."""
    alike = sorted(name for name in shipped if kind_of_shipped(name) == facts.kind) or sorted(shipped)
    named = [name for name in alike if _names(name, _plain(facts.name))]
    if named:
        return max(named, key=len)
    return min(alike, key=lambda name: _distance(rates, shipped[name]))


def kind_of_shipped(name: str) -> Kind:
    """A processor's highest power would be none of a board's, however near their rates are."""
    return "cpu" if name.startswith(PROCESSORS) else "cuda"


def _distance(rates: Mapping[str, float], device: DeviceModel) -> float:
    """Mean factor between the two, on a logarithmic scale; what only one of them has counts as a factor e."""
    known = dict(device.coefficients())
    theirs = {name for name in known if name == "memory_bytes_per_s" or name.endswith("flop_per_s")}
    apart = [abs(math.log(rates[name] / known[name].value)) for name in theirs & rates.keys()]
    apart += [1.0] * len(theirs ^ rates.keys())
    return sum(apart) / max(len(apart), 1)


def _names(short: str, spelled: str) -> bool:
    """Words may stand between family and number: xeon8480 is an Intel(R) Xeon(R) Platinum 8480+."""
    family = re.fullmatch(r"([a-z]{3,})(\d+)", _plain(short))
    return all(part in spelled for part in (family.groups() if family else (_plain(short),)))


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
