"""The ways in which what ranks hold can be read out of one value of the baseline, by shapes alone.

In: the shapes of both and the mesh. Out: readings, the plainest first: whole or in blocks by rank; in another
order of dimensions; through a reshape. A program whose ranks stand side by side in one graph reads windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise, permutations
from math import prod
from typing import cast

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph
from scalify.ir.mesh import Groups, Mesh, MeshAxis
from scalify.layout.maps import Shape
from scalify.layout.ranks import joined
from scalify.layout.views import RankDigits
from scalify.relate.layouts import Layout, Split, text_of

MOST_DIMS_PERMUTED = 4
MOST_READINGS = 256
MOST_AXES = 4

Window = tuple[slice, ...]
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Transpose by ``perm``, reshape to ``shape``, then read a window on each rank.

    ``windows`` is empty where both programs run on the same ranks.
    """

    text: str
    layout: Layout = ()
    perm: Order | None = None
    shape: Shape | None = None
    windows: tuple[Window, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether dimensions are those of the baseline, in order."""
        return self.perm is None and self.shape is None

    def of(self, given: PerRank) -> PerRank:
        """What each rank reads."""
        if not self.windows:
            return given
        value = given[0]
        if self.perm is not None:
            value = value.transpose(self.perm)
        if self.shape is not None:
            value = value.reshape(self.shape)
        return [value[window] for window in self.windows]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of the candidate: ``axes`` are those of its mesh and what its collectives' groups imply.

    ``unrolled``: the ranks stand side by side in one graph. ``baseline``: how many ranks that one has.
    """

    mesh: Mesh
    axes: tuple[MeshAxis, ...]
    unrolled: bool
    baseline: int

    @staticmethod
    def of(baseline: Graph, candidate: Graph) -> "Ranks":
        """The ranks of two programs."""
        axes = [axis for axis in candidate.mesh.placed() if axis.size > 1]
        for node in candidate.nodes:
            groups = node.attrs.get("groups")  # of a convolution a number of channel groups
            axis = _axis_of(cast(Groups, groups)) if isinstance(groups, tuple) else None
            known = {(each.stride, each.size) for each in axes}
            if axis is not None and (axis.stride, axis.size) not in known and len(axes) < MOST_AXES:
                axes.append(axis)
        return Ranks(candidate.mesh, tuple(axes), candidate.unrolled > 0, baseline.mesh.size)

    def sets(self) -> tuple[tuple[MeshAxis, ...], ...]:
        """Axes together, each rank's digit in at most one of them."""
        return _sets(self.axes)

    def digits(self, axes: tuple[MeshAxis, ...]) -> RankDigits:
        """The digits of the rank's number along some axes."""
        return joined(tuple(sorted((axis.stride, axis.size) for axis in axes)))


def readings(whole: Shape, local: Shape, ranks: Ranks) -> tuple[Reading, ...]:
    """All readings of shape ``local`` on each rank, of a value of shape ``whole``."""
    return _readings(whole, local, ranks)


@lru_cache(maxsize=4096)
def _readings(whole: Shape, local: Shape, ranks: Ranks) -> tuple[Reading, ...]:
    if ranks.baseline > 1:
        return (Reading(text="the same on each rank"),) if whole == local else ()
    if ranks.unrolled:
        return tuple(_windows(whole, local))
    found = [*_plain(whole, local, ranks)]
    for reading in (*_transposed(whole, local, ranks), *_reshaped(whole, local, ranks)):
        if len(found) >= MOST_READINGS:
            break
        found.append(reading)
    return tuple(found)


def _windows(whole: Shape, local: Shape) -> Iterator[Reading]:
    if whole == local:
        yield Reading(text="whole", windows=(tuple(slice(0, size) for size in local),))
    elif len(whole) == len(local):
        smaller = [dim for dim, size in enumerate(local) if size != whole[dim]]
        if len(smaller) == 1 and 0 < local[smaller[0]] < whole[smaller[0]]:
            dim = smaller[0]
            for start in range(whole[dim] - local[dim] + 1):
                last = start + local[dim]
                window = tuple(slice(start, last) if d == dim else slice(0, n) for d, n in enumerate(local))
                yield Reading(text=f"{start}-{last - 1} of dimension {dim}", windows=(window,))


def _plain(whole: Shape, local: Shape, ranks: Ranks) -> Iterator[Reading]:
    for layout in _layouts(whole, local, ranks):
        windows = tuple(_window(layout, local, rank) for rank in range(ranks.mesh.size))
        yield Reading(text=text_of(layout), layout=layout, windows=windows)


def _window(layout: Layout, local: Shape, rank: int) -> Window:
    starts = [0] * len(local)
    for split in layout:
        weight = 1
        for stride, size in split.digits() or ():
            starts[split.dim] += local[split.dim] * weight * (rank // stride % size)
            weight *= size
    return tuple(slice(start, start + size) for start, size in zip(starts, local, strict=True))


def _layouts(whole: Shape, local: Shape, ranks: Ranks) -> Iterator[Layout]:
    if len(whole) != len(local) or any(
        part < 1 or full < 1 or full % part for full, part in zip(whole, local, strict=True)
    ):
        return
    ratios = [
        (dim, full // part) for dim, (full, part) in enumerate(zip(whole, local, strict=True)) if full != part
    ]
    if not ratios:
        yield ()
    elif len(ratios) == 1:
        ((dim, blocks),) = ratios
        yield from ((split,) for split in _splits(dim, blocks, ranks))
    elif len(ratios) == 2:
        for one in _splits(*ratios[0], ranks):
            for other in _splits(*ratios[1], ranks):
                if _apart((*one.axes, *other.axes)):
                    yield one, other


def _splits(dim: int, blocks: int, ranks: Ranks) -> Iterator[Split]:
    for axes in ranks.sets():
        split = Split(dim, blocks, axes)
        size = prod(axis.size for axis in axes)
        fits = size == blocks or (len(axes) == 1 and size > blocks and size % blocks == 0)
        if fits and split.digits() is not None:
            yield split


def _transposed(whole: Shape, local: Shape, ranks: Ranks) -> Iterator[Reading]:
    if len(whole) != len(local) or not 1 < len(whole) <= MOST_DIMS_PERMUTED:
        return
    for perm in permutations(range(len(whole))):
        moved = tuple(whole[dim] for dim in perm)
        if perm != tuple(sorted(perm)):
            for plain in _plain(moved, local, ranks):
                text = f"with dimensions in the order {', '.join(map(str, perm))}, {plain.text}"
                yield Reading(text=text, layout=plain.layout, perm=perm, windows=plain.windows)


def _reshaped(whole: Shape, local: Shape, ranks: Ranks) -> Iterator[Reading]:
    """Of the elements in their order in memory, cut along any one dimension of the other shape."""
    count, held = prod(whole), prod(local)
    if not held or count % held or (whole == local):
        return
    blocks = count // held
    for dim in range(len(local)) if blocks > 1 else (0,):
        shape = tuple(size * (blocks if d == dim else 1) for d, size in enumerate(local))
        if shape == whole:
            continue
        for plain in _plain(shape, local, ranks):
            text = f"reshaped to {list(shape)}, {plain.text}"
            yield Reading(text=text, layout=plain.layout, shape=shape, windows=plain.windows)


@lru_cache(maxsize=256)
def _sets(axes: tuple[MeshAxis, ...]) -> tuple[tuple[MeshAxis, ...], ...]:
    found: list[tuple[MeshAxis, ...]] = []
    for count in range(1, len(axes) + 1):
        apart = (chosen for chosen in combinations(axes, count) if _apart(chosen))
        found.extend(tuple(sorted(chosen, key=lambda axis: -axis.stride)) for chosen in apart)
    return tuple(found)


def _apart(axes: Sequence[MeshAxis]) -> bool:
    """Whether no digit of the rank is in two of the axes."""
    placed = sorted(axes, key=lambda axis: axis.stride)
    return all(two.stride % (one.stride * one.size) == 0 for one, two in pairwise(placed))


def _axis_of(groups: Groups) -> MeshAxis | None:
    """What groups with an even step are along."""
    if not groups or len(groups[0]) < 2:
        return None
    size, stride = len(groups[0]), abs(groups[0][1] - groups[0][0])
    firsts = (
        {rank - rank // stride % size * stride for group in groups for rank in group} if stride else set()
    )
    even = bool(firsts) and {frozenset(group) for group in groups} == {
        frozenset(first + stride * place for place in range(size)) for first in firsts
    }
    name = f"groups of {size}" + (f" with step {stride}" if stride > 1 else "")
    return MeshAxis(name=name, size=size, stride=stride) if even else None
