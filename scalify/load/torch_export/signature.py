"""What an exported program takes and gives: its signature, as parameters and results."""

from collections.abc import Mapping

from scalify.errors import UnsupportedFormat
from scalify.load.torch_export.archive import Archive, Json
from scalify.load.torch_export.fields import array, damaged, mapping, only, text
from scalify.load.torch_export.program import Parameter, Ref, Result, ValueName
from scalify.load.torch_export.schema import Reader
from scalify.load.torch_export.tensors import Stored, stored_constant

_UPDATES: Mapping[str, str] = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}


def parameters(signature: Json, reader: Reader, archive: Archive, model: str) -> tuple[Parameter, ...]:
    """Inputs, parameters and buffers in the order of the signature; plain numbers are none."""
    payloads = _payloads(archive, model)
    found = (
        _parameter(*only(spec, "an input"), reader, archive, payloads)
        for spec in array(signature.get("input_specs"), "input_specs")
    )
    return tuple(parameter for parameter in found if parameter is not None)


def _payloads(archive: Archive, model: str) -> Mapping[str, object]:
    member = f"data/constants/{model}_constants_config.json"
    if not archive.has(member):
        return {}
    return mapping(archive.json(member).get("config"), member)


def _parameter(
    tag: str, value: object, reader: Reader, archive: Archive, payloads: Mapping[str, object]
) -> Parameter | None:
    fields = mapping(value, f"a {tag}")
    if tag == "constant_input":
        return None
    if tag == "user_input":
        argument = reader.argument(fields.get("arg"))
        return _typed(argument.name, argument.name, "input", reader) if isinstance(argument, Ref) else None
    if tag not in ("parameter", "buffer", "tensor_constant"):
        raise UnsupportedFormat(f"the program takes a {tag}", hint="export a model that takes tensors")
    name = ValueName(text(mapping(fields.get("arg"), tag).get("name"), tag))
    label = text(fields.get(f"{tag}_name"), f"{tag} {name}")
    if tag == "parameter":
        return _typed(name, label, "parameter", reader)
    kept = tag == "buffer" and fields.get("persistent") is not False
    stored = Stored() if kept or label not in payloads else stored_constant(archive, payloads[label], label)
    return _typed(name, label, "buffer", reader, stored)


def _typed(name: str, label: str, role: str, reader: Reader, stored: Stored | None = None) -> Parameter:
    meta = reader.meta(name)
    return Parameter(
        name=ValueName(name),
        label=label,
        role="parameter" if role == "parameter" else "buffer" if role == "buffer" else "input",
        type=meta.type,
        contiguous=meta.contiguous,
        data=stored.data if stored else None,
        digest=stored.digest if stored else None,
    )


def results(signature: Json, reader: Reader) -> tuple[Result, ...]:
    """Outputs in order. A mutation names the parameter whose contents it replaces."""
    found = [
        _result(*only(spec, "an output"), reader)
        for spec in array(signature.get("output_specs"), "output_specs")
    ]
    return tuple(result for result in found if result is not None)


def _result(tag: str, value: object, reader: Reader) -> Result | None:
    fields = mapping(value, f"a {tag}")
    if tag == "token":
        return None
    if tag == "user_output":
        return Result(value=reader.argument(fields.get("arg")))
    name = ValueName(text(mapping(fields.get("arg"), tag).get("name"), tag))
    if tag in _UPDATES:
        return Result(value=Ref(name), updates=text(fields.get(_UPDATES[tag]), tag))
    if tag in ("loss_output", "gradient_to_parameter", "gradient_to_user_input"):
        return Result(value=Ref(name))
    raise damaged(f"the program gives a {tag}")
