"""Names for the tensors inside whatever a user's code takes or returns."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

DEEPEST = 16  # a structure that holds itself ends here


def named_leaves(structure: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors, arrays and numbers in tuples, lists, mappings and dataclasses: "output.0", "output.logits".

    Anything else has no leaves: strings, None, objects of the user's own.
    """
    if depth > DEEPEST:
        return
    if hasattr(structure, "__array__") or isinstance(structure, bool | int | float | complex):
        yield name, structure
        return
    for key, part in _parts(structure):
        yield from named_leaves(part, f"{name}.{key}" if name else key, depth + 1)


def _parts(structure: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(structure, Mapping):
        yield from ((str(key), part) for key, part in cast(Mapping[Any, Any], structure).items())
    elif isinstance(structure, tuple | list):
        names = cast(tuple[str, ...] | None, getattr(structure, "_fields", None))  # of a named tuple
        parts = cast(tuple[Any, ...], structure)
        yield from ((names[i] if names else str(i), part) for i, part in enumerate(parts))
    elif is_dataclass(structure):
        yield from ((field.name, getattr(structure, field.name)) for field in fields(structure))
