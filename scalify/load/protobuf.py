"""Protobuf messages from a table of fields: numbers and types are facts, no generated code is needed.

In: for each message, ``"name number type, ..."``, where a star after the type means repeated and a name of
the table another message of it. Out: classes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = MappingProxyType(
    {
        "int64": _Field.TYPE_INT64,
        "int32": _Field.TYPE_INT32,
        "uint64": _Field.TYPE_UINT64,
        "uint32": _Field.TYPE_UINT32,
        "float": _Field.TYPE_FLOAT,
        "double": _Field.TYPE_DOUBLE,
        "bool": _Field.TYPE_BOOL,
        "string": _Field.TYPE_STRING,
        "bytes": _Field.TYPE_BYTES,
    }
)


def message_classes(package: str, messages: Mapping[str, str]) -> Mapping[str, Any]:
    """The class of every message, by its name in the table."""
    name = f"{package.replace('.', '/')}.proto"
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    for message, fields in messages.items():
        declared = file.message_type.add(name=message)
        for declaration in fields.split(", "):
            _declare(declared, declaration, package)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message}"))
        for message in messages
    }


def _declare(message: descriptor_pb2.DescriptorProto, declaration: str, package: str) -> None:
    name, number, kind = declaration.split()
    repeated = kind.endswith("*")
    kind = kind.removesuffix("*")
    field = message.field.add(name=name, number=int(number))
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{package}.{kind}"
