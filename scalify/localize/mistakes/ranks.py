"""Mistakes with ranks: what is combined, over whom, how often, and which part each holds."""

from fractions import Fraction
from typing import cast

from scalify.ir.graph import Node
from scalify.ir.mesh import Groups
from scalify.ir.ops import OPS
from scalify.localize.align import is_collective
from scalify.localize.first import Finding, Scene, Why, is_movement
from scalify.localize.standing import Standing
from scalify.localize.text import axes_text, groups_text, number, pending_text, relation_text


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


def parts_combined(scene: Scene, finding: Finding) -> str | None:
    """A combination over ranks that hold different parts of one value."""
    node = finding.node
    if node.op not in ("all_reduce", "reduce_scatter"):
        return None
    before = scene.standing(node.operands[0])
    if before.partial is not None or not before.splits:
        return None
    return f"wrong group: its ranks hold different parts, and nothing is pending: {relation_text(before)}"


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
    pending = [scene.standing(operand).partial for operand in node.operands]
    if is_movement(node) or (node.op in ("add", "sub") and None not in pending):
        return None
    for operand in node.operands:
        if scene.standing(operand).partial is not None:
            return _missing(scene, scene.nodes[operand])
    return None


def added_to_pending(scene: Scene, finding: Finding) -> str | None:
    """What all ranks hold, added to what they go on to sum up."""
    node = finding.node
    if node.op not in ("add", "sub") or finding.why is Why.PENDING or len(node.operands) != 2:
        return None
    partials = [scene.standing(operand).partial for operand in node.operands]
    pending = next((partial for partial in partials if partial is not None and partial.kind == "sum"), None)
    if pending is None or None not in partials or not _is_summed(scene, node):
        return None
    added = scene.nodes[node.operands[partials.index(None)]]
    name = added.attrs["name"] if added.op == "input" else added.id
    return (
        f"counted once per rank ({pending.ranks} times): {name} is added to a sum that is still to be taken: "
        "add it after the all-reduce, or on one rank"
    )


def _is_summed(scene: Scene, node: Node) -> bool:
    """Whether a value, or what it is moved or added to, is combined over ranks later on."""
    reached = {node.id}
    for each in scene.inside:
        if not reached & {*each.operands}:
            continue
        if is_collective(each):
            return each.op in ("all_reduce", "reduce_scatter")
        if is_movement(each) or each.op in ("add", "sub"):
            reached.add(each.id)
    return False


def unused_combination(scene: Scene, finding: Finding) -> str | None:
    """A combination whose result nothing reads."""
    node = finding.node
    ends = {output.value for output in scene.candidate.outputs}
    if not is_collective(node) or node.id in ends:
        return None
    if any(node.id in each.operands for each in scene.candidate.nodes):
        return None
    return f"the result of the {node.op.replace('_', '-')} is not used: what it combines goes on as it was"


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
    over = axes_text(partial, scene.candidate.mesh)
    return f"missing all-reduce after {producer.id}: its result is {pending_text(partial)}{over}"


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


def unlike_factors(scene: Scene, finding: Finding) -> str | None:
    """Addends of which one is a multiple, and the other is not."""
    node = finding.node
    if node.op not in ("add", "sub"):
        return None
    scales = [scene.standing(operand).scale for operand in node.operands]
    related = all(scene.standing(operand).is_related for operand in node.operands)
    if not related or len(set(scales)) < 2:
        return None
    said = ", ".join(f"{number(scale)} times" for scale in scales)
    return f"wrong divisor or factor: the operands are {said} the baseline's values"


def _group_size(node: Node) -> int | None:
    groups = node.attrs.get("groups")  # of a convolution a number of channel groups
    return len(cast(Groups, groups)[0]) if isinstance(groups, tuple) and groups else None


def wrong_divisor(scene: Scene, finding: Finding) -> str | None:
    """A result that is a multiple of what it should be."""
    node, standing = finding.node, scene.standing(finding.node.id)
    if node.op == "constant" or standing.scale == 1 or not standing.is_related:
        return None
    ranks = scene.candidate.mesh.size
    often = standing.scale in (Fraction(ranks), Fraction(1, ranks))
    hint = f": counted once per rank, or not at all, of {ranks}" if often and ranks > 1 else ""
    return f"wrong divisor or factor: {number(standing.scale)} times the baseline's value{hint}"


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
