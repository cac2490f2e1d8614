"""What PyTorch's operators mean in the IR: one table per family, looked up by ``namespace.operator``.

An entry may name an overload (``aten.max.dim``), which then goes before the operator. In-place variants
are not listed: ``translate`` takes the entry of the same name without the trailing underscore.
"""

from collections.abc import Mapping
from types import MappingProxyType

from scalify.load.torch_export.meaning.arithmetic import ARITHMETIC
from scalify.load.torch_export.meaning.attention import ATTENTION
from scalify.load.torch_export.meaning.collectives import COLLECTIVES
from scalify.load.torch_export.meaning.contraction import CONTRACTION
from scalify.load.torch_export.meaning.convolution import CONVOLUTION
from scalify.load.torch_export.meaning.creation import CREATION
from scalify.load.torch_export.meaning.elementwise import ELEMENTWISE
from scalify.load.torch_export.meaning.gradients import GRADIENTS
from scalify.load.torch_export.meaning.indexing import INDEXING
from scalify.load.torch_export.meaning.joining import JOINING
from scalify.load.torch_export.meaning.loss import LOSS
from scalify.load.torch_export.meaning.movement import MOVEMENT
from scalify.load.torch_export.meaning.normalization import NORMALIZATION
from scalify.load.torch_export.meaning.ordering import ORDERING
from scalify.load.torch_export.meaning.reduction import REDUCTION
from scalify.load.torch_export.operation import Meaning, Meanings

_FAMILIES: tuple[Meanings, ...] = (
    ARITHMETIC, ATTENTION, COLLECTIVES, CONTRACTION, CONVOLUTION, CREATION, ELEMENTWISE, GRADIENTS, INDEXING,
    JOINING, LOSS, MOVEMENT, NORMALIZATION, ORDERING, REDUCTION,
)  # fmt: skip

MEANINGS: Mapping[str, Meaning] = MappingProxyType({
    name: meaning for family in _FAMILIES for name, meaning in family.items()
})  # fmt: skip
