"""A serialized HLO module as the text that XLA would print of it, for tests that read both.

Only what occurs in the graphs that tests have is printed. Instructions are named with a percent sign,
operands with their shapes, constants in full.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scalify.load.hlo.literals import STORAGE
from scalify.load.hlo.shapes import ELEMENT_NAMES


def printed(module: Any) -> str:
    """The text of a module message."""
    names = {computation.id: computation.name for computation in module.computations}
    aliases = ", ".join(
        f"{_set(entry.output)}: ({entry.parameter}, {_set(entry.parameter_path)}, must-alias)"
        for entry in module.aliases.entries
    )
    lines = [f"HloModule {module.name}, is_scheduled=true, input_output_alias={{ {aliases} }}", ""]
    for computation in module.computations:
        lines.extend(_computation(computation, names, is_entry=computation.id == module.entry))
    return "\n".join(lines)


def _computation(computation: Any, names: dict[int, str], *, is_entry: bool) -> Iterator[str]:
    by_id = {each.id: each for each in computation.instructions}
    parameters = [each for each in computation.instructions if each.opcode == "parameter"]
    signature = ", ".join(f"{each.name}: {_shape(each.shape)}" for each in parameters)
    start = "ENTRY " if is_entry else ""
    yield f"{start}%{computation.name} ({signature}) -> {_shape(by_id[computation.root].shape)} {{"
    for each in computation.instructions:
        root = "ROOT " if each.id == computation.root else ""
        inside = ", ".join((_inside(each, by_id), *_attributes(each, names)))
        yield f"  {root}%{each.name} = {_shape(each.shape)} {each.opcode}({inside}"
    yield "}"
    yield ""


def _inside(each: Any, by_id: dict[int, Any]) -> str:
    if each.opcode == "parameter":
        return f"{each.parameter_number})"
    if each.opcode == "constant":
        return f"{_literal(each.literal)})"
    operands = (f"{_shape(by_id[operand].shape)} %{by_id[operand].name}" for operand in each.operands)
    return f"{', '.join(operands)})"


def _attributes(each: Any, names: dict[int, str]) -> Iterator[str]:
    if each.opcode == "iota":
        yield f"iota_dimension={each.dimensions[0]}"
    elif each.dimensions or each.opcode == "broadcast":
        yield f"dimensions={_set(each.dimensions)}"
    if each.slices:
        bounds = ", ".join(f"[{part.start}:{part.limit}:{part.stride}]" for part in each.slices)
        yield f"slice={{{bounds}}}"
    if each.HasField("dot"):
        yield f"lhs_batch_dims={_set(each.dot.lhs_batch)}"
        yield f"lhs_contracting_dims={_set(each.dot.lhs_contracting)}"
        yield f"rhs_batch_dims={_set(each.dot.rhs_batch)}"
        yield f"rhs_contracting_dims={_set(each.dot.rhs_contracting)}"
    if each.HasField("gather"):
        yield f"offset_dims={_set(each.gather.offset)}"
        yield f"collapsed_slice_dims={_set(each.gather.collapsed)}"
        yield f"start_index_map={_set(each.gather.start_map)}"
        yield f"index_vector_dim={each.gather.index_vector}, slice_sizes={_set(each.gather_sizes)}"
    if each.groups:
        yield f"replica_groups={{{','.join(_set(group.ids) for group in each.groups)}}}"
    if each.direction:
        yield f"direction={each.direction}"
    if each.target:
        yield f'custom_call_target="{each.target}"'
    if each.backend_config:
        yield f'backend_config="{each.backend_config.decode()}"'
    yield from (f"to_apply=%{names[called]}" for called in each.called)
    quoted = each.metadata.source_file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    yield f'metadata={{source_file="{quoted}" source_line={each.metadata.source_line}}}'


def _shape(shape: Any) -> str:
    element = ELEMENT_NAMES[shape.element_type]
    if element == "tuple":
        return f"({', '.join(_shape(part) for part in shape.tuple_shapes)})"
    layout = _set(shape.layout.minor_to_major) if shape.dimensions else ""
    return f"{element}[{','.join(map(str, shape.dimensions))}]{layout}"


def _literal(literal: Any) -> str:
    element = ELEMENT_NAMES[literal.shape.element_type]
    values = getattr(literal, f"{element}s")
    if isinstance(values, bytes):
        values = np.frombuffer(values, STORAGE[element])
    shown = [repr(value) for value in np.asarray(values).tolist()]
    return f"{{{', '.join(shown)}}}" if literal.shape.dimensions else shown[0]


def _set(numbers: Any) -> str:
    return f"{{{','.join(map(str, numbers))}}}"
