"""A module through torch.export, as plain records. Nothing is decomposed: linear stays linear."""

import re
import warnings
from collections.abc import Mapping

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from scalify.capture.failure import capture_failed
from scalify.capture.fx import DTYPES, FxReader, origin, pure_operators, tensor_type
from scalify.capture.lines import all_lines
from scalify.capture.spelled import doubtful, spell
from scalify.capture.target import Built
from scalify.errors import CaptureFailed
from scalify.ir.mesh import SINGLE, Groups, Mesh
from scalify.load.torch_export.program import Parameter, Program, Ref, Result, ValueName
from scalify.load.torch_export.scalars import STORED
from scalify.load.torch_export.tensors import Stored, valued
from scalify.load.torch_export.translate import translate

_ROLES = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer", InputKind.CONSTANT_TENSOR: "buffer"}
_UPDATES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION, OutputKind.PARAMETER_MUTATION)


def export(module: Built) -> ExportedProgram:
    """The exported program; what PyTorch could not export is the user's to put right."""
    try:
        with warnings.catch_warnings(), all_lines():
            warnings.simplefilter("ignore")
            exported = torch.export.export(
                module.module, tuple(module.args), dict(module.kwargs), strict=False
            )
    except Exception as error:
        raise capture_failed(
            error,
            what="torch.export cannot export the module",
            hint="run torch.export.export(module, args, strict=False) on it to see the whole report",
        ) from error
    if doubtful(exported):
        spell(exported, _unknown(exported))
    return exported


def _unknown(exported: ExportedProgram) -> frozenset[str]:
    """Names and operators of the calls for which the IR has no meaning."""
    opaque = [node for node in translate(program_of(exported, name="")).nodes if node.op == "opaque"]
    targets = (re.split("[ #]", str(node.attrs["target"]))[0] for node in opaque)
    return frozenset({*targets, *(str(node.id).partition(".")[0] for node in opaque)})


def program_of(
    exported: ExportedProgram, *, name: str, mesh: Mesh = SINGLE, groups: Mapping[str, Groups] | None = None
) -> Program:
    """The records of an exported program."""
    reader = FxReader(exported.graph_module)
    calls = reader.calls()
    metas = {
        node.name: node.meta.get("val")
        for node in exported.graph_module.graph.nodes
        if node.op == "placeholder"
    }
    specs = exported.graph_signature
    parameters = (_parameter(spec, metas, exported.constants) for spec in specs.input_specs)
    outputs = reader.outputs()
    return Program(
        name=name,
        origin=origin(exported.graph_module),
        parameters=tuple(parameter for parameter in parameters if parameter is not None),
        calls=calls,
        results=tuple(
            _result(spec, output if isinstance(output, Ref) else None)
            for spec, output in zip(specs.output_specs, outputs, strict=True)
            if spec.kind is not OutputKind.TOKEN
        ),
        mesh=mesh,
        groups=groups or {},
        pure=pure_operators(exported.graph_module),
    )


def _parameter(
    spec: InputSpec, metas: Mapping[str, object], constants: Mapping[str, object]
) -> Parameter | None:
    if not isinstance(spec.arg, TensorArgument):
        if isinstance(spec.arg, ConstantArgument):
            return None
        raise CaptureFailed(f"the program takes {spec.arg.name}, which is no tensor", hint="pass tensors")
    tensor = metas[spec.arg.name]
    assert isinstance(tensor, torch.Tensor)
    label = spec.target or spec.arg.name
    lifted = spec.kind is InputKind.CONSTANT_TENSOR or (
        spec.kind is InputKind.BUFFER and spec.persistent is False
    )
    stored = stored_values(constants.get(label)) if lifted else Stored()
    role = _ROLES.get(spec.kind, "input")
    return Parameter(
        name=ValueName(spec.arg.name),
        label=label,
        role="parameter" if role == "parameter" else "buffer" if role == "buffer" else "input",
        type=tensor_type(tensor, label),
        contiguous=tensor.is_contiguous(),
        data=stored.data,
        digest=stored.digest,
    )


def stored_values(tensor: object) -> Stored:
    """The values of a constant that has any: meta and fake tensors do not."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not isinstance(tensor, torch.Tensor):
        return Stored()
    if tensor.is_meta or tensor.dtype not in DTYPES or DTYPES[tensor.dtype] not in STORED:
        return Stored()
    dtype = DTYPES[tensor.dtype]
    plain = tensor.detach().cpu().contiguous()
    raw = plain.view(torch.uint8) if plain.ndim else plain.reshape(1).view(torch.uint8)
    values = np.frombuffer(raw.numpy().tobytes(), dtype=np.dtype(STORED[dtype])).reshape(tuple(plain.shape))
    return valued(values, tensor_type(tensor, "a constant"))


def _result(spec: OutputSpec, output: Ref | None) -> Result:
    updates = spec.target if spec.kind in _UPDATES else None
    return Result(value=output, updates=updates)
