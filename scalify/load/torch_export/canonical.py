"""The arguments of an unknown operator as one text, equal exactly where the arguments are."""

import json
from collections.abc import Mapping

from scalify.load.torch_export.program import Argument, Body, DTypeName, Foreign, Ref


def text_of(arguments: Mapping[str, Argument]) -> str:
    """Tensors are holes: an opaque node has them as operands, in the same order."""
    stated = {name: _plain(value) for name, value in arguments.items()}
    return json.dumps({name: value for name, value in stated.items() if value is not None}, sort_keys=True)


def _plain(value: Argument) -> object:
    match value:
        case Ref():
            return "<tensor>"
        case DTypeName():
            return value.dtype
        case Foreign():
            return f"<{value.text}>" if value.matters else None
        case Body():
            return [[call.target, text_of(call.arguments)] for call in value.calls]
        case complex():
            return [value.real, value.imag]
        case tuple():
            return [_plain(entry) for entry in value]
        case _:
            return value
