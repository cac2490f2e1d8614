"""Reports for programs: plain JSON with a schema name and version.

Fields are those of the dataclasses behind them (``magneton.compare.model``), in the same units: SI, or the
meter's unit where the name has none. ``null`` means not measured or, as a bound of an interval, unbounded;
there is no NaN. A change that removes or redefines a field raises the version; an added field does not.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:  # it loads all of matching, which other reports do without
    from magneton.compare.model import Comparison

COMPARISON_SCHEMA = "magneton-comparison"
COMPARISON_VERSION = 1


def comparison_json(comparison: "Comparison") -> str:
    """The whole comparison. Escapes everything that is not ASCII, so it is safe to print."""
    return document(COMPARISON_SCHEMA, COMPARISON_VERSION, comparison)


def document(schema: str, version: int, content: object) -> str:
    """``content`` as one JSON object that says which schema it follows."""
    body = cast("dict[str, Any]", plain(content))
    text = json.dumps({"schema": schema, "version": version, **body}, indent=2, allow_nan=False)
    return text.replace("#", r"\u0023")  # only in strings: a CI runner obeys "##[...]" wherever it stands


def plain(content: object) -> Any:
    """Dataclasses, mappings and sequences as JSON knows them."""
    if is_dataclass(content) and not isinstance(content, type):
        return {field.name.rstrip("_"): plain(getattr(content, field.name)) for field in fields(content)}
    if isinstance(content, Mapping):
        return {str(key): plain(value) for key, value in cast("Mapping[object, object]", content).items()}
    if isinstance(content, Enum):
        return content.value
    if isinstance(content, np.generic):
        return plain(content.item())
    if content is None or isinstance(content, str | bool | int):
        return content
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Iterable):
        return [plain(item) for item in cast("Iterable[object]", content)]
    raise TypeError(f"{type(content).__name__} has no place in a JSON report")
