"""The messages of an ONNX model, as far as they are read: numbers and types of fields.

Built as descriptors at first use, so that neither generated code nor the ``onnx`` package is needed. A field
that is not declared is unknown: its meaning could change what a node computes, so ``wire`` refuses a model
that sets one. Fields that are declared as plain bytes and never looked at are skipped, each with its reason
in ``SKIPPED``.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from scalify.load.protobuf import message_classes

PACKAGE = "scalify.onnx"

# "name number type", where a star after the type means repeated and a capital letter another message here.
MESSAGES: Mapping[str, str] = MappingProxyType(
    {
        "Entry": "key 1 string, value 2 string",
        "Opset": "domain 1 string, version 2 int64",
        "Tensor": "dims 1 int64*, data_type 2 int32, segment 3 bytes, float_data 4 float*, int32_data 5 "
        "int32*, string_data 6 bytes*, int64_data 7 int64*, name 8 string, raw_data 9 bytes, double_data "
        "10 double*, uint64_data 11 uint64*, doc 12 bytes, external_data 13 Entry*, data_location 14 int32, "
        "metadata 16 bytes*",
        "Dim": "size 1 int64, symbol 2 string, denotation 3 bytes",
        "Shape": "dims 1 Dim*",
        "TensorType": "element 1 int32, shape 2 Shape",
        "Type": "tensor 1 TensorType, sequence 4 bytes, map 5 bytes, denotation 6 bytes, sparse 8 bytes, "
        "optional 9 bytes",
        "ValueInfo": "name 1 string, type 2 Type, doc 3 bytes, metadata 4 bytes*",
        "Attribute": "name 1 string, f 2 float, i 3 int64, s 4 bytes, t 5 Tensor, g 6 bytes, floats 7 "
        "float*, ints 8 int64*, strings 9 bytes*, tensors 10 bytes*, graphs 11 bytes*, doc 13 bytes, tp 14 "
        "bytes, type_protos 15 bytes*, type 20 int32, reference 21 string, sparse 22 bytes, sparses 23 "
        "bytes*",
        "Node": "inputs 1 string*, outputs 2 string*, name 3 string, op 4 string, attributes 5 Attribute*, "
        "doc 6 bytes, domain 7 string, overload 8 string, metadata 9 Entry*, devices 10 bytes*",
        "Graph": "nodes 1 Node*, name 2 string, initializers 5 Tensor*, doc 10 bytes, inputs 11 "
        "ValueInfo*, outputs 12 ValueInfo*, values 13 ValueInfo*, quantization 14 bytes*, sparse 15 bytes*, "
        "metadata 16 Entry*",
        "Function": "name 1 string, inputs 4 string*, outputs 5 string*, attributes 6 string*, nodes 7 "
        "Node*, doc 8 bytes, opsets 9 Opset*, domain 10 string, defaults 11 Attribute*, values 12 "
        "ValueInfo*, overload 13 string, metadata 14 bytes*",
        "Model": "ir_version 1 int64, producer 2 bytes, producer_version 3 bytes, domain 4 bytes, version 5 "
        "int64, doc 6 bytes, graph 7 Graph, opsets 8 Opset*, metadata 14 bytes*, training 20 bytes*, "
        "functions 25 Function*, configuration 26 bytes*",
    }
)

SKIPPED: Mapping[str, str] = MappingProxyType(
    {
        "*.doc": "for people",
        "Model.producer, producer_version, domain, version, metadata": "where the model comes from",
        "Model.training": "another graph, which is no part of what the model computes",
        "Model.configuration, Node.devices": "where a node should run",
        "Graph.quantization": "how tensors were quantized; the nodes that do it are in the graph",
        "*.denotation": "what an axis is called",
        "Tensor.metadata, ValueInfo.metadata, Function.metadata": "annotations",
    }
)


def message_class(name: str) -> Any:
    """The class of one message, ``Model`` for a file. Its fields are those of ``MESSAGES``."""
    return _classes()[name]


@cache
def _classes() -> Mapping[str, Any]:
    return message_classes(PACKAGE, MESSAGES)
