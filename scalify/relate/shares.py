"""What ranks that stand side by side hold of one tensor: all of it, or windows of their own sizes.

In: the shape of the baseline's tensor and those of the ranks. Out: where each rank's window begins, and words
for it; or a sentence why shapes do not tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from scalify.ir.mesh import SINGLE
from scalify.ir.unrolled import unranked
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.layouts import index_of

MANY_SIZES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What ranks hold of a tensor: so many elements each of ``dim``, which is None if all hold it whole."""

    dim: int | None = None
    sizes: tuple[int, ...] = ()

    def starts(self) -> tuple[int, ...]:
        """Where each rank's begins."""
        return (0, *accumulate(self.sizes))[:-1]


def shares(whole: Shape, held: Sequence[Shape]) -> Shares | str:
    """How ``held`` by the ranks in order make up ``whole``; or a sentence why they do not."""
    if all(shape == whole for shape in held):
        return Shares()
    said = f"the baseline holds {list(whole)}, the ranks {_shapes(held)}"
    if any(len(shape) != len(whole) for shape in held):
        return f"{said}: not the same number of dimensions"
    dims = [dim for dim, size in enumerate(whole) if any(shape[dim] != size for shape in held)]
    if len(dims) > 1:
        return f"{said}: dimensions {dims} differ; state what each rank holds"
    (dim,) = dims
    sizes = tuple(shape[dim] for shape in held)
    if sum(sizes) == whole[dim]:
        return Shares(dim=dim, sizes=sizes)
    times, odd = divmod(sum(sizes), whole[dim]) if whole[dim] else (0, 1)
    if times > 1 and not odd:
        return f"{said}: dimension {dim} {times} times in all; state which rank holds what"
    return f"{said}: {sum(sizes)} elements along dimension {dim} in all are not {whole[dim]}"


def of_rank(name: str) -> tuple[str, int]:
    """An input's or output's name in its rank's own program, and the rank."""
    found = unranked(name)
    if found is None:
        raise AssertionError(f"{name!r} is of no rank: the graph was not checked")
    return found


def window_index(dim: int, start: int, local: Shape, whole: Shape) -> IndexMap:
    """What the elements of a window are in the baseline's tensor."""
    return index_of((), local, whole, SINGLE, {dim: start})


def _shapes(held: Sequence[Shape]) -> str:
    said = [f"{list(shape)}" + _times(len(list(run))) for shape, run in groupby(held)]
    return ", ".join(said[:MANY_SIZES]) + (", ..." if len(said) > MANY_SIZES else "")


def _times(count: int) -> str:
    return f" ({count} of them)" if count > 1 else ""


def sizes_text(sizes: Sequence[int]) -> str:
    """``3, 3, 3, 1``; of many, equal ones in one."""
    if len(sizes) <= MANY_SIZES:
        return ", ".join(map(str, sizes))
    return ", ".join(f"{size}{_times(len(list(run)))}" for size, run in groupby(sizes))


def ranks_text(ranks: Sequence[int]) -> str:
    """``0-3``, or all of them where they do not follow each other."""
    if ranks[-1] - ranks[0] == len(ranks) - 1 and len(ranks) > 1:
        return f"{ranks[0]}-{ranks[-1]}"
    return ", ".join(map(str, ranks))


def window_text(dim: int, start: int, local: Shape, name: str) -> str:
    """``rows 0-2 of y``."""
    last = start + local[dim] - 1
    what = f"{start}" if last == start else f"{start}-{last}"
    if dim == 0:
        return f"row{'' if last == start else 's'} {what} of {name}"
    return f"{what} of dimension {dim} of {name}"
