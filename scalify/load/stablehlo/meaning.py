"""What HLO has no opcode for, or scalify's reader of HLO no meaning: as nodes.

These opcodes are those of jaxprs (``cumsum``, ``argmax``), of ``shard_map``'s border (``shard``, ``unshard``)
and of StableHLO where it is richer (``exchange``: an all-to-all along two dimensions; gathers with batches).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scalify.ir.graph import Site, TensorType
from scalify.ir.mesh import MeshAxis, RankInt, groups_along
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.program import Metadata, Module
from scalify.load.hlo.sites import Place
from scalify.load.hlo.translate import HLO, Dialect
from scalify.load.stablehlo import indexed, windows

_ELEMENTWISE = {"exp2": "exp2", "atan": "atan", "square": "square"}


def _axis(step: Step, number: int) -> MeshAxis:
    return step.emission.ranks.mesh().placed()[number]


def _axis_index(step: Step) -> Value:
    """Where the rank stands on one axis of the mesh."""
    axis = _axis(step, step.instruction.dimensions[0])
    return step.emit("rank", (), stride=axis.stride, size=axis.size)


def _shard(step: Step) -> Value:
    """The rank's own block: ``pairs`` are dimensions and the axes they are cut over, slowest first."""
    value = step.array(0)
    shape = step.type_of(value).shape
    starts = [_start(step, dim, size) for dim, size in enumerate(step.type.shape)]
    if step.type.shape == shape:
        return value
    limits = tuple(
        RankInt(base=start.base + size, terms=start.terms) if isinstance(start, RankInt) else start + size
        for start, size in zip(starts, step.type.shape, strict=True)
    )
    return step.emit("slice", (value,), starts=tuple(starts), limits=limits, steps=(1,) * len(shape))


def _start(step: Step, dim: int, size: int) -> int | RankInt:
    axes = [_axis(step, number) for cut, number in step.instruction.pairs if cut == dim]
    terms: list[tuple[int, int, int]] = []
    for axis in reversed(axes):
        if axis.size > 1:
            terms.append((axis.stride, axis.size, size))
        size *= axis.size
    return RankInt(base=0, terms=tuple(terms)) if terms else 0


def _unshard(step: Step) -> Value:
    """The blocks of all ranks put together, the fastest axis first."""
    value = step.array(0)
    mesh = step.emission.ranks.mesh()
    for dim, number in reversed(step.instruction.pairs):
        axis = _axis(step, number)
        if axis.size == 1:
            continue
        type = step.type_of(value)
        shape = (*type.shape[:dim], type.shape[dim] * axis.size, *type.shape[dim + 1 :])
        groups = groups_along(mesh, (axis.name,))
        value = step.emit(
            "all_gather", (value,), TensorType(type.dtype, shape), "whole", dim=dim, groups=groups
        )
    return value


def _exchange(step: Step) -> Value:
    """``dimensions`` are the one that is split and the one that is joined."""
    split, concat = step.instruction.dimensions
    groups = step.instruction.groups or ()
    if all(len(group) == 1 for group in groups):
        return step.array(0)
    return step.emit("all_to_all", step.arrays(1), split_dim=split, concat_dim=concat, groups=groups)


def _cumulative(step: Step) -> Value:
    """``cumsum`` and ``cumprod``; a ``direction`` of ``reverse`` begins at the end."""
    (value,) = step.arrays(1)
    (axis,) = step.axes(step.instruction.dimensions, len(step.type.shape), "dimensions")
    return windows.cumulative(step, value, step.instruction.opcode, axis, step.instruction.direction)


def _arg(step: Step) -> Value:
    (axis,) = step.axes(step.instruction.dimensions, len(step.type_of(step.array(0)).shape), "dimensions")
    return step.emit(step.instruction.opcode, step.arrays(1), axis=axis, keepdims=False)


def _erfc(step: Step) -> Value:
    (value,) = step.arrays(1)
    inner = step.emit("erf", (value,), step="erf")
    one = step.scalar(1.0, step.type.dtype, "one")
    return step.emit("sub", (one, inner))


def _coordinate(step: Step) -> Value:
    """A quotient or rest of the rank's number that is its place on an axis is read as that."""
    value = HLO.handlers[step.instruction.opcode](step)
    if step.type.shape or not isinstance(value, str) or step.emission.ranks.mesh().size == 1:
        return value
    found = step.emission.by_rank.starts((value,), (2**62,))
    place = found[0] if found else 0
    if not isinstance(place, RankInt) or place.base or len(place.terms) != 1 or place.terms[0][2] != 1:
        return value
    stride, size, _ = place.terms[0]
    return step.emit("rank", (), step="place", stride=stride, size=size)


def _elementwise(step: Step) -> Value:
    return step.emit(_ELEMENTWISE[step.instruction.opcode], step.arrays(1))


_HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {
        **HLO.handlers,
        **dict.fromkeys(_ELEMENTWISE, _elementwise),
        "axis-index": _axis_index,
        "shard": _shard,
        "unshard": _unshard,
        "exchange": _exchange,
        "cumsum": _cumulative,
        "cumprod": _cumulative,
        "argmax": _arg,
        "argmin": _arg,
        "erfc": _erfc,
        "divide": _coordinate,
        "remainder": _coordinate,
        "gather": indexed.gather,
        "scatter": indexed.scatter,
        "reduce-window": windows.reduce_window,
    }
)


class Innermost:
    """JAX says of every operation which lines called it: the line to show is the innermost of the user's.

    The chain holds no frame of an installed package unless there is no other.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._places: dict[int, Place] = {}

    def of(self, metadata: Metadata | None) -> Place:
        """The line to show and the whole chain, outermost first."""
        if metadata is None:
            return None, ()
        number = metadata.stack_frame
        if number not in self._places:
            self._places[number] = self._place(number)
        return self._places[number]

    def _place(self, number: int) -> Place:
        chain: list[Site] = []
        while number in self._module.frames:
            frame = self._module.frames[number]
            chain.append(Site(frame.file, frame.line, frame.function))
            number = frame.parent
        own = [site for site in chain if not _is_installed(site.file)] or chain
        return (own[0] if own else None), tuple(reversed(own))


def _is_installed(file: str) -> bool:
    return "/site-packages/" in file or "/dist-packages/" in file


DIALECT = Dialect(_HANDLERS, Innermost)
