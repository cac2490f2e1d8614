"""The attributes of a node without a meaning as one text, equal exactly where the attributes are.

In the form that definitions of unknown operations read: names, with ``{"tensor": 0}`` for the first operand.
"""

import json
from hashlib import sha256

from scalify.load.onnx.model import Parameter, Tensor, Value
from scalify.load.onnx.operation import Operation
from scalify.load.onnx.tensors import as_written


def text_of(operation: Operation) -> str:
    """Attributes by name; inputs are numbered, with a gap where one is left out."""
    stated: dict[str, object] = {name: _plain(value) for name, value in operation.attributes.items()}
    places = iter(range(len(operation.inputs)))
    stated[""] = [None if wire is None else {"tensor": next(places)} for wire in operation.inputs]
    return json.dumps(stated, sort_keys=True)


def _plain(value: Value) -> object:
    match value:
        case float():
            return as_written(value)
        case tuple():
            return [as_written(entry) if isinstance(entry, float) else entry for entry in value]
        case Tensor():
            digest = None if value.raw is None else sha256(value.raw).hexdigest()
            return {"stored": [value.type.dtype, list(value.type.shape), digest]}
        case Parameter():
            return {"parameter": value.name}
        case _:
            return value
