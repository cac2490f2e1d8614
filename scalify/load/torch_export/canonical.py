"""The arguments of an unknown operator as one text, equal exactly where the arguments are.

Names with their values as JSON. What is no number, truth or text is an object that says what it is:
``{"tensor": 0}`` is the first operand of the opaque node, ``{"dtype": "bf16"}`` a type. Whoever defines such
an operator by a function calls it with these (``scalify.definitions``).
"""

import json
from collections.abc import Iterator, Mapping
from itertools import count

from scalify.load.torch_export.program import Argument, Body, DTypeName, Foreign, Ref


def text_of(arguments: Mapping[str, Argument]) -> str:
    """Tensors are numbered: an opaque node has them as operands, in the order of the call."""
    numbers = count()
    stated = {name: _plain(value, numbers) for name, value in arguments.items()}
    return json.dumps({name: value for name, value in stated.items() if value is not None}, sort_keys=True)


def _plain(value: Argument, numbers: Iterator[int]) -> object:
    match value:
        case Ref():
            return {"tensor": next(numbers)}
        case DTypeName():
            return {"dtype": value.dtype}
        case Foreign():
            return {"foreign": value.text} if value.matters else None
        case Body():
            return {"body": [[call.target, text_of(call.arguments)] for call in value.calls]}
        case complex():
            return {"complex": [value.real, value.imag]}
        case tuple():
            return [_plain(entry, numbers) for entry in value]
        case _:
            return value
