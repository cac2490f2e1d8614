"""Mistakes that people make when they distribute a program, each as a function that recognises it.

In: the suspect in its scene. Out: one sentence, or nothing. The first that recognises something speaks.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import cast

from scalify.ir.graph import Node
from scalify.ir.mesh import Groups
from scalify.ir.ops import OPS
from scalify.localize.align import is_collective
from scalify.localize.first import Finding, Scene, Why, is_movement
from scalify.localize.standing import Standing
from scalify.localize.text import (
    attr_text,
    constant_text,
    differences,
    groups_text,
    number,
    pending_text,
)

Mistake = Callable[[Scene, Finding], str | None]


def other_result(scene: Scene, finding: Finding) -> str | None:
    """Results in each other's places."""
    if finding.why is not Why.OTHER_RESULT or finding.goal is None:
        return None
    wanted, found = finding.goal.baseline, scene.standing(finding.node.id)
    names = {output.value: output.name for output in scene.baseline.outputs}
    if found.counterpart is None or not found.is_related:
        return None
    other, own = names.get(found.counterpart), finding.goal.output or finding.node.id
    if other is None:
        return (
            f"something is missing after it: {own} is the baseline's {found.counterpart}, wanted is {wanted}"
        )
    return (
        f"outputs are swapped: {own} is the baseline's output {other}, wanted is {names.get(wanted, wanted)}"
    )


def wrong_group(scene: Scene, finding: Finding) -> str | None:
    """A combination that leaves ranks out, or is over the ranks of another axis."""
    node = finding.node
    if not is_collective(node) or "groups" not in node.attrs:
        return None
    before, after = scene.standing(node.operands[0]), scene.standing(node.id)
    groups = cast(Groups, node.attrs["groups"])
    if after.partial is None or before.partial is None:
        if after.is_related or before.partial is None or before.partial.kind != _kind(node):
            return None
        return (
            f"wrong group: the value is {pending_text(before.partial)}, "
            f"and the groups {groups_text(groups)} are not made of these ranks"
        )
    return (
        f"wrong group: the {after.partial.kind} over {after.partial.ranks} of {scene.candidate.mesh.size} "
        f"ranks is still pending: the groups {groups_text(groups)} leave it"
    )


def wrong_combination(scene: Scene, finding: Finding) -> str | None:
    """A pending sum that is combined by a maximum, and the like."""
    node = finding.node
    if not is_collective(node) or "kind" not in node.attrs:
        return None
    partial = scene.standing(node.operands[0]).partial
    if partial is None or partial.kind == _kind(node):
        return None
    return f"wrong operator: combines ranks by {node.attrs['kind']} where a {partial.kind} is pending"


def _kind(node: Node) -> str:
    kind = str(node.attrs.get("kind", "sum"))
    return "sum" if kind == "avg" else kind


def missing_combination(scene: Scene, finding: Finding) -> str | None:
    """A partial sum used as if it were whole."""
    node = finding.node
    if finding.why is Why.PENDING:
        return _missing(scene, node)
    if is_movement(node):
        return None
    for operand in node.operands:
        if scene.standing(operand).partial is not None:
            return _missing(scene, scene.nodes[operand])
    return None


def _missing(scene: Scene, node: Node) -> str | None:
    partial = scene.standing(node.id).partial
    if partial is None:
        return None
    producer = node
    while producer.operands:
        pending = [o for o in producer.operands if scene.standing(o).partial is not None]
        if not pending:
            break
        producer = scene.nodes[pending[0]]
    return f"missing all-reduce after {producer.id}: its result is {pending_text(partial)}"


def counted_per_rank(scene: Scene, finding: Finding) -> str | None:
    """A value that all ranks hold, summed over them."""
    node, standing = finding.node, scene.standing(finding.node.id)
    count = _group_size(node)
    if standing.scale == 1 or count is None or standing.scale != count:
        return None
    return (
        f"replicated value counted once per rank: the result is {count} times the baseline's value, "
        f"for all {count} ranks of a group hold the same"
    )


def wrong_divisor(scene: Scene, finding: Finding) -> str | None:
    """A result that is a multiple of what it should be."""
    node, standing = finding.node, scene.standing(finding.node.id)
    if node.op == "constant" or standing.scale == 1 or not standing.is_related:
        return None
    ranks = scene.candidate.mesh.size
    often = standing.scale in (Fraction(ranks), Fraction(1, ranks))
    hint = f": counted once per rank, or not at all, of {ranks}" if often and ranks > 1 else ""
    return f"wrong divisor or factor: {number(standing.scale)} times the baseline's value{hint}"


def _group_size(node: Node) -> int | None:
    groups = node.attrs.get("groups")
    return len(cast(Groups, groups)[0]) if groups else None


def different_constant(scene: Scene, finding: Finding) -> str | None:
    """Another number."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if given is None or node.op != given.op:
        return None
    if node.op == "constant":
        return f"different constant: {_other_value(node, given)}"
    differing = differences(node, given)
    for name in ("eps", "scale", "slope"):
        if name in differing:
            own, other = differing[name]
            return f"different constant: {name} {attr_text(own)} where the baseline has {attr_text(other)}"
    return None


def _other_value(node: Node, given: Node) -> str:
    own, other = node.attrs.get("data"), given.attrs.get("data")
    if isinstance(own, tuple) and isinstance(other, tuple) and len(own) == len(other) > 1:
        apart = [place for place, pair in enumerate(zip(own, other, strict=True)) if pair[0] != pair[1]]
        if apart:
            first = apart[0]
            return (
                f"element {first} is {attr_text(own[first])} where the baseline has {attr_text(other[first])}"
                f" ({len(apart)} of {len(own)} elements differ)"
            )
    return f"{constant_text(node)} where the baseline has {constant_text(given)}"


def wrong_operator(scene: Scene, finding: Finding) -> str | None:
    """Another operation, or another kind of reduction."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if given is None or is_collective(node):
        return None
    if node.op != given.op:
        return f"wrong operator: {node.op} where the baseline has {given.op}"
    if "kind" in differences(node, given):
        own, other = differences(node, given)["kind"]
        return f"wrong operator: reduces with {own} where the baseline reduces with {other}"
    return None


def moved_window(scene: Scene, finding: Finding) -> str | None:
    """A slice from another place."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if node.op != "slice" or given is None or given.op != "slice":
        return None
    own, other = (cast(tuple[object, ...], each.attrs["starts"]) for each in (node, given))
    if len(own) != len(other):
        return None
    standing = scene.standing(node.operands[0])
    blocks = {split.dim: split.blocks for split in standing.splits}
    limits = [cast(tuple[object, ...], each.attrs["limits"]) for each in (node, given)]
    for dim, (start, wanted) in enumerate(zip(own, other, strict=True)):
        count = blocks.get(dim, 1)
        if _times(start, count) != wanted or _times(limits[0][dim], count) != limits[1][dim]:
            return (
                f"moved window: dimension {dim} is read from {_shown(start)} to {_shown(limits[0][dim])}, "
                f"the baseline reads from {_shown(wanted)} to {_shown(limits[1][dim])}"
                f"{_on_each(wanted, limits[1][dim], count)}"
            )
    return None


def _on_each(start: object, limit: object, count: int) -> str:
    """What a window is on one rank, of a dimension (or of each of its parts) in ``count`` blocks."""
    if (
        count == 1
        or not isinstance(start, int)
        or not isinstance(limit, int)
        or start % count
        or limit % count
    ):
        return ""
    return f": {start // count} to {limit // count} on each rank, of {count} blocks"


def _times(value: object, count: int) -> object:
    return value * count if isinstance(value, int) else value


def _shown(value: object) -> str:
    return attr_text(cast(int, value))


def swapped_transpose(scene: Scene, finding: Finding) -> str | None:
    """Dimensions in another order."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if given is None or node.op != given.op or "perm" not in differences(node, given):
        return None
    own, other = differences(node, given)["perm"]
    return f"swapped transpose: permutes by {attr_text(own)} where the baseline does by {attr_text(other)}"


def swapped_operands(scene: Scene, finding: Finding) -> str | None:
    """The same operands in another order: of a concatenation, a difference, a quotient."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if given is None or node.op != given.op or len(node.operands) != len(given.operands):
        return None
    own = [scene.alignment.counterpart.get(operand) for operand in node.operands]
    if own == [*given.operands] or sorted(map(str, own)) != sorted(given.operands):
        return None
    if node.op == "concat":
        return (
            f"wrong fused order: parts {', '.join(map(str, own))} follow each other where the baseline has "
            f"{', '.join(given.operands)}"
        )
    return f"operands are swapped: {', '.join(map(str, own))} for the baseline's {', '.join(given.operands)}"


def wrong_part(scene: Scene, finding: Finding) -> str | None:
    """A fused tensor whose parts are read across their ends."""
    node = finding.node
    if node.op != "slice":
        return None
    if not scene.standing(node.operands[0]).by_part:
        return None
    source = node.operands[0]
    return f"wrong fused order: {source} holds parts one after the other; this window is none of them"


def fused_as_one(scene: Scene, finding: Finding) -> str | None:
    """Parts that the baseline cuts apart, of a tensor that was sharded as if it had none."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if node.op != "slice" or given is None or given.op != "slice":
        return None
    for split in scene.standing(node.operands[0]).splits:
        size = scene.given[given.operands[0]].type.shape[split.dim]
        if given.type.shape[split.dim] != size:
            return (
                f"wrong fused order: {node.operands[0]} is sharded as one piece in dimension {split.dim}, of "
                f"which the baseline reads {given.type.shape[split.dim]} of {size}: each part needs its own"
            )
    return None


def other_layout(scene: Scene, finding: Finding) -> str | None:
    """A result on other ranks than is asked for."""
    if finding.why is not Why.OTHER_LAYOUT or finding.goal is None:
        return None
    found = scene.standing(finding.node.id).layout or "in another order of its elements"
    wanted = " or ".join(name for name, _ in finding.goal.choices or ())
    return f"wrong layout: the result is {found}, wanted is {wanted}"


def other_operand(scene: Scene, finding: Finding) -> str | None:
    """A value that is right by itself, in the place of another."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if given is None or node.op != given.op or len(node.operands) != len(given.operands):
        return None
    for position, (operand, wanted) in enumerate(zip(node.operands, given.operands, strict=True)):
        found = scene.alignment.counterpart.get(operand)
        if found is not None and found != wanted and scene.standings.of(operand, wanted).is_related is False:
            return f"wrong operand: operand {position} is the baseline's {found} where it reads {wanted}"
    return None


def wrong_gather(scene: Scene, finding: Finding) -> str | None:
    """A collective along a dimension that is not the sharded one."""
    node = finding.node
    if not is_collective(node):
        return None
    dim = node.attrs.get("dim", node.attrs.get("concat_dim"))
    splits = scene.standing(node.operands[0]).splits
    if not isinstance(dim, int) or not splits or any(split.dim == dim for split in splits):
        return None
    sharded = " and ".join(str(split.dim) for split in splits)
    return f"wrong shard dimension: {node.op} along dimension {dim}, the value is cut in dimension {sharded}"


def wrong_shard(scene: Scene, finding: Finding) -> str | None:
    """Operands that are cut in different ways along a dimension in which they meet."""
    node = finding.node
    dims = _meeting_dims(scene, node)
    for dim in sorted({dim for named in dims for dim in named}, key=str):
        held = {
            place: _held(scene.standing(node.operands[place]), named[dim])
            for place, named in enumerate(dims)
            if dim in named
        }
        if len(held) > 1 and None not in held.values() and len(set(held.values())) > 1:
            said = ", ".join(f"operand {place} holds {text}" for place, text in held.items())
            where = f"letter {dim} of {node.attrs['spec']}" if node.op == "einsum" else f"dimension {dim}"
            return f"wrong shard dimension: along {where}, {said}"
    return None


def _meeting_dims(scene: Scene, node: Node) -> list[dict[str, int]]:
    """Per operand, under which name (a letter, or the result's dimension) each of its long dimensions meets
    those of the others."""
    shapes = [scene.nodes[operand].type.shape for operand in node.operands]
    if node.op == "einsum":
        left, _, _ = str(node.attrs["spec"]).partition("->")
        named = [dict(zip(letters, range(len(letters)), strict=True)) for letters in left.split(",")]
    elif len({len(shape) for shape in shapes} - {0}) and (OPS[node.op].meaning is not None):
        rank = max(map(len, shapes))
        named = [{str(dim + rank - len(shape)): dim for dim in range(len(shape))} for shape in shapes]
    else:
        return []
    return [
        {name: dim for name, dim in dims.items() if dim < len(shape) and shape[dim] > 1}
        for dims, shape in zip(named, shapes, strict=True)
    ]


def _held(standing: Standing, dim: int) -> str | None:
    """Which part of a dimension an operand holds."""
    if standing.layout is None:
        return None
    split = next((split for split in standing.splits if split.dim == dim), None)
    if split is None:
        return "all of it"
    return f"1 of {split.blocks} blocks" + (" of each part" if standing.by_part else "")


def other_attribute(scene: Scene, finding: Finding) -> str | None:
    """Anything else that is written differently in the baseline."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    if given is None or is_collective(node):
        return None
    for name, (own, other) in differences(node, given).items():
        return f"different {name}: {attr_text(own)} where the baseline has {attr_text(other)}"
    return None


MISTAKES: Sequence[Mistake] = (
    other_result,
    wrong_combination,
    wrong_group,
    missing_combination,
    counted_per_rank,
    different_constant,
    wrong_operator,
    swapped_transpose,
    swapped_operands,
    moved_window,
    wrong_part,
    fused_as_one,
    other_layout,
    wrong_gather,
    wrong_shard,
    wrong_divisor,
    other_operand,
    other_attribute,
)


def guess(scene: Scene, finding: Finding) -> str:
    """The likely mistake, or nothing."""
    return next((text for mistake in MISTAKES if (text := mistake(scene, finding))), "")
