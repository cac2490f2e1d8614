"""Mistakes in the code itself: another number, operation, order or operand than in the baseline."""

from scalify.ir.graph import Node
from scalify.localize.align import is_collective
from scalify.localize.first import Finding, Scene
from scalify.localize.text import attr_text, constant_text, differences


def different_constant(scene: Scene, finding: Finding) -> str | None:
    """Another number."""
    node, given = finding.node, scene.own_counterpart(finding.node.id)
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
    node, given = finding.node, scene.own_counterpart(finding.node.id)
    if given is None or is_collective(node):
        return None
    if node.op != given.op:
        return f"wrong operator: {node.op} where the baseline has {given.op}"
    if "kind" in differences(node, given):
        own, other = differences(node, given)["kind"]
        return f"wrong operator: reduces with {own} where the baseline reduces with {other}"
    return None


def swapped_transpose(scene: Scene, finding: Finding) -> str | None:
    """Dimensions in another order."""
    node, given = finding.node, scene.own_counterpart(finding.node.id)
    if given is None or node.op != given.op or "perm" not in differences(node, given):
        return None
    own, other = differences(node, given)["perm"]
    return f"swapped transpose: permutes by {attr_text(own)} where the baseline does by {attr_text(other)}"


def swapped_operands(scene: Scene, finding: Finding) -> str | None:
    """The same operands in another order: of a concatenation, a difference, a quotient."""
    node, given = finding.node, scene.own_counterpart(finding.node.id)
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


def other_operand(scene: Scene, finding: Finding) -> str | None:
    """A value that is right by itself, in the place of another."""
    node, given = finding.node, scene.own_counterpart(finding.node.id)
    if given is None or node.op != given.op or len(node.operands) != len(given.operands):
        return None
    for position, (operand, wanted) in enumerate(zip(node.operands, given.operands, strict=True)):
        found = scene.alignment.counterpart.get(operand)
        if found is not None and found != wanted and scene.standings.of(operand, wanted).is_related is False:
            return f"wrong operand: operand {position} is the baseline's {found} where it reads {wanted}"
    return None


def other_attribute(scene: Scene, finding: Finding) -> str | None:
    """Anything else that is written differently in the baseline."""
    node, given = finding.node, scene.own_counterpart(finding.node.id)
    if given is None or is_collective(node):
        return None
    for name, (own, other) in differences(node, given).items():
        return f"different {name}: {attr_text(own)} where the baseline has {attr_text(other)}"
    return None
