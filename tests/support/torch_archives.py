"""Archives as torch.export writes them, made by hand: for damage that PyTorch would not write."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

Json = dict[str, Any]


def tensor(*sizes: object, dtype: int = 7) -> Json:
    """A tensor's description: of float32 unless said otherwise, row-major."""
    known = [size if isinstance(size, int) else 1 for size in sizes]
    strides = [1] * len(known)
    for place in range(len(known) - 2, -1, -1):
        strides[place] = strides[place + 1] * known[place + 1]
    return {
        "dtype": dtype,
        "sizes": [{"as_int": size} if isinstance(size, int) else size for size in sizes],
        "strides": [{"as_int": stride} for stride in strides],
        "storage_offset": {"as_int": 0},
        "layout": 7,
        "device": {"type": "cpu", "index": None},
        "requires_grad": False,
    }


def ref(name: str) -> Json:
    """An argument that is a value."""
    return {"as_tensor": {"name": name}}


def call(target: str, result: str, **arguments: object) -> Json:
    """One node."""
    return {
        "target": f"torch.ops.{target}",
        "inputs": [{"name": name, "arg": arg, "kind": 1} for name, arg in arguments.items()],
        "outputs": [ref(result)],
        "metadata": {},
        "name": result,
    }


def model(
    nodes: list[Json], types: Mapping[str, Json], *, inputs: tuple[str, ...] = ("x",), output: str
) -> Json:
    """The JSON of a program that takes tensors and gives one."""
    return {
        "graph_module": {
            "graph": {
                "inputs": [ref(name) for name in inputs],
                "outputs": [ref(output)],
                "nodes": nodes,
                "tensor_values": dict(types),
                "sym_int_values": {},
            },
            "signature": {
                "input_specs": [{"user_input": {"arg": ref(name)}} for name in inputs],
                "output_specs": [{"user_output": {"arg": ref(output)}}],
            },
        },
        "schema_version": {"major": 8, "minor": 20},
    }


def relu_model() -> Json:
    """relu of a [2, 3]."""
    types = {"x": tensor(2, 3), "relu": tensor(2, 3)}
    return model([call("aten.relu.default", "relu", self=ref("x"))], types, output="relu")


def graph_of(content: Json) -> Json:
    """The graph within a model's JSON, to be changed."""
    return cast(Json, content["graph_module"]["graph"])


def archive(path: Path, content: object, others: Mapping[str, bytes | str] | None = None) -> Path:
    """Write an archive with this model and other members below its top folder."""
    with zipfile.ZipFile(path, "w") as file:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        file.writestr("program/models/model.json", text)
        for name, extra in (others or {}).items():
            file.writestr(f"program/{name}", extra)
    return path
