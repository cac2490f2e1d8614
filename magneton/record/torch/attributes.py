"""The arguments of an operator that are no tensors, as bounded JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import cast

from torch import Tensor

LONGEST = 1000  # characters
MEMBERS = 64  # of one list


def attributes_json(given: Mapping[str, object]) -> str:
    """Arguments by name. Tensors on their own are left out, tensors in lists are "T"."""
    plain = {name: _plain(value) for name, value in given.items() if not isinstance(value, Tensor)}
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
    return text if len(text) <= LONGEST else json.dumps({"truncated": text[: LONGEST // 2]})


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Tensor):
        return "T"
    if isinstance(value, list | tuple):
        members = cast(Sequence[object], value)
        more = ["..."] if len(members) > MEMBERS else []
        return [_plain(member) for member in members[:MEMBERS]] + more
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text
