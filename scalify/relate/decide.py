"""One layout of an input out of those whose shapes fit, by fixed rules; or a sentence why none is decided.

A layout that fits alone is taken. Of several, names of mesh axes and roles decide, and only thus: parameters
are sharded over tensor axes (``tp``, ``mp``, ``ep``, ...), the first dimension of inputs over data axes
(``dp``, ``fsdp``, ...) and later ones over those of a sequence (``cp``, ``sp``, ...). On a mesh that shards
parameters over data (``fsdp``), names decide nothing of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scalify.ir.mesh import Mesh
from scalify.layout.maps import Shape
from scalify.relate.layouts import Layout, Split, axes_by_size, layouts, text_of

TENSOR_AXES = frozenset({"tp", "tensor", "mp", "model", "ep", "expert", "tensor_parallel", "model_parallel"})
SHARDING_AXES = frozenset({"fsdp", "dp_shard", "zero", "hsdp"})
DATA_AXES = SHARDING_AXES | {"dp", "data", "ddp", "batch", "replica", "dp_replicate", "data_parallel"}
SEQUENCE_AXES = frozenset({"cp", "sp", "context", "sequence", "seq", "context_parallel", "sequence_parallel"})

SMALLER_SIZES = 6
MANY_RANKS = 65_536


class Decision(NamedTuple):
    """The layout and the rule that chose it, if one was needed; or why there is none."""

    layout: Layout | None
    rule: str = ""
    why: str = ""


def decide(whole: Shape, local: Shape, mesh: Mesh, role: str) -> Decision:
    """How ``local`` on every rank makes up ``whole``. ``role`` is empty where the program tells none."""
    fitting = layouts(whole, local, mesh)
    if len(fitting) == 1:
        return Decision(fitting[0])
    if not fitting:
        return Decision(None, why=_nothing_fits(whole, local, mesh))
    chosen, rule = _by_role(fitting, mesh, role)
    if len(chosen) == 1:
        return Decision(chosen[0], rule=rule)
    options = "; or ".join(map(text_of, fitting))
    return Decision(None, why=f"{shapes(whole, local)}: {options}")


def _by_role(fitting: Sequence[Layout], mesh: Mesh, role: str) -> tuple[list[Layout], str]:
    if role == "parameter" and not any(name in SHARDING_AXES for name, _ in mesh.axes):
        chosen = [one for one in fitting if _over(one) <= TENSOR_AXES]
        return chosen, _rule("parameters are", fitting, TENSOR_AXES)
    if role == "input":
        chosen = [one for one in fitting if all(_is_usual(split) for split in one)]
        if any(split.dim for one in chosen for split in one):
            return (
                chosen,
                "of inputs, the first dimension is taken as sharded over data, a later one over sequence",
            )
        return chosen, _rule("the first dimension of inputs is", fitting, DATA_AXES)
    return [], ""


def _is_usual(split: Split) -> bool:
    """Whether texts are cut over data axes, and what is in them over axes of a sequence."""
    return {axis.name for axis in split.axes} <= (SEQUENCE_AXES if split.dim else DATA_AXES)


def _over(layout: Layout) -> set[str]:
    return {axis.name for split in layout for axis in split.axes}


def _rule(what: str, fitting: Sequence[Layout], preferred: frozenset[str]) -> str:
    names = dict.fromkeys(axis.name for one in fitting for split in one for axis in split.axes)
    taken = [name for name in names if name in preferred]
    others = [name for name in names if name not in preferred]
    return f"{what} taken as sharded over {' and '.join(taken)}, not {' or '.join(others)}"


def shapes(whole: Shape, local: Shape) -> str:
    """Both shapes for people."""
    return f"the baseline holds {list(whole)}, every rank {list(local)}"


def _nothing_fits(whole: Shape, local: Shape, mesh: Mesh) -> str:
    said = shapes(whole, local)
    if len(whole) != len(local):
        return f"{said}: {len(whole)} dimensions are not {len(local)}"
    differing = [dim for dim, size in enumerate(whole) if size != local[dim]]
    if mesh.size == 1:
        return f"{said}, and there is one rank: shapes should be equal"
    if len(differing) > 1:
        return (
            f"{said} of {mesh.size}: dimensions {differing} differ, and no axes of their own fit each of them"
        )
    dim = differing[0]
    sizes = sorted({whole[dim] // count for count in axes_by_size(mesh) if whole[dim] % count == 0})
    fits = f"{', '.join(map(str, sizes[-SMALLER_SIZES:]))} or {whole[dim]}" if sizes else str(whole[dim])
    return f"{said} of {mesh.size} ({described(mesh)}): dimension {dim} would fit with {fits} elements"


def described(mesh: Mesh) -> str:
    """The axes of a mesh for people."""
    return ", ".join(f"{name} {size}" for name, size in mesh.axes) or "one rank"


def blocks_that_fit(parts: Sequence[int], local: int, mesh: Mesh) -> tuple[tuple[int, ...], ...]:
    """In how many blocks each of the ``parts`` may be cut so that one of each make up ``local`` elements.

    Equal parts are cut alike. Only numbers of blocks that ranks of the whole mesh can hold in equal shares.
    """
    distinct = sorted(set(parts), reverse=True)
    if mesh.size > MANY_RANKS or len(distinct) > 3:
        return ()
    counts = [count for count in range(1, mesh.size + 1) if mesh.size % count == 0]
    if len(counts) ** len(distinct) > 20_000:
        return ()
    choices: list[dict[int, int]] = [{}]
    for size in distinct:
        fitting = [count for count in counts if size % count == 0]
        choices = [{**choice, size: count} for choice in choices for count in fitting]
    found = (choice for choice in choices if sum(size // choice[size] for size in parts) == local)
    return tuple(sorted((tuple(choice[size] for size in parts) for choice in found), reverse=True))
