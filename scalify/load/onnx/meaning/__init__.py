"""What ONNX's operators mean: one table of all, by name, for opset 13 and up."""

from types import MappingProxyType

from scalify.load.onnx.meaning.attention import ATTENTION
from scalify.load.onnx.meaning.contraction import CONTRACTION
from scalify.load.onnx.meaning.creation import CREATION
from scalify.load.onnx.meaning.elementwise import ELEMENTWISE
from scalify.load.onnx.meaning.indexing import INDEXING
from scalify.load.onnx.meaning.movement import MOVEMENT
from scalify.load.onnx.meaning.normalization import NORMALIZATION
from scalify.load.onnx.meaning.reduction import REDUCTION
from scalify.load.onnx.meaning.windows import WINDOWS
from scalify.load.onnx.operation import Meanings

MEANINGS: Meanings = MappingProxyType({
    **ELEMENTWISE, **MOVEMENT, **CONTRACTION, **REDUCTION, **NORMALIZATION, **ATTENTION, **INDEXING,
    **CREATION, **WINDOWS,
})  # fmt: skip
