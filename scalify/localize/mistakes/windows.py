"""Mistakes with windows: slices from another place, or across the parts of a fused tensor."""

from typing import cast

from scalify.localize.first import Finding, Scene
from scalify.localize.text import attr_text


def moved_window(scene: Scene, finding: Finding) -> str | None:
    """A slice from another place."""
    node, given = finding.node, scene.own_counterpart(finding.node.id)
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
    node, given = finding.node, scene.own_counterpart(finding.node.id)
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
