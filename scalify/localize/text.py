"""Sentences about standings and attributes, with numbers."""

from collections.abc import Mapping
from fractions import Fraction

from scalify.ir.graph import Attr, Node, NodeId
from scalify.ir.mesh import Groups, Mesh, RankInt
from scalify.layout.ranks import joined
from scalify.layout.views import Partial
from scalify.localize.first import Scene
from scalify.localize.standing import Standing

COMBINED = {"sum": "summed", "max": "maximised", "min": "minimised", "prod": "multiplied"}


def relation_text(standing: Standing) -> str:
    """``the baseline's dot.52, dimension 1 sharded over rank, still to be summed over 4 ranks``."""
    if not standing.is_related:
        return f"not known to be the baseline's {standing.counterpart}"
    parts = [f"the baseline's {standing.counterpart}"]
    if standing.scale != 1:
        parts[0] = f"{number(standing.scale)} times {parts[0]}"
    if standing.partial is None or standing.splits:
        parts.append(standing.layout or "in another order of its elements")
    if standing.partial is not None:
        parts.append(pending_text(standing.partial))
    return ", ".join(parts)


def pending_text(partial: Partial) -> str:
    """What is still to be done over ranks."""
    return f"still to be {COMBINED.get(partial.kind, partial.kind)} over {partial.ranks} ranks"


def axes_text(partial: Partial, mesh: Mesh) -> str:
    """``, along tp``, where the ranks are those along axes of the mesh."""
    found = [axis for axis in mesh.placed() if (axis.stride, axis.size) in partial.digits]
    if joined(tuple(sorted((axis.stride, axis.size) for axis in found))) != partial.digits or not found:
        return ""
    return f", along {' and '.join(axis.name for axis in found)}"


def number(value: Fraction) -> str:
    """A factor as people write it."""
    return str(value) if value.denominator < 1000 else f"{float(value):.6g}"


def attr_text(value: Attr) -> str:
    """An attribute's value, short."""
    if isinstance(value, RankInt):
        terms = (f"{factor} * (rank // {stride} % {size})" for stride, size, factor in value.terms)
        return " + ".join([str(value.base), *terms])
    if isinstance(value, tuple):
        shown = ", ".join(attr_text(each) for each in value[:6])
        return f"({shown}{', ...' if len(value) > 6 else ''})"
    return str(value)


def groups_text(groups: Groups) -> str:
    """``{0,1},{2,3}``."""
    shown = ",".join("{" + ",".join(map(str, group)) + "}" for group in groups[:4])
    return shown + (",..." if len(groups) > 4 else "")


def differences(node: Node, given: Node) -> Mapping[str, tuple[Attr, Attr]]:
    """Attributes that both have and that differ: the candidate's and the baseline's value."""
    if node.op != given.op:
        return {}
    return {
        name: (value, given.attrs[name])
        for name, value in node.attrs.items()
        if name in given.attrs and given.attrs[name] != value
    }


def operand_text(scene: Scene, node: Node, position: int) -> str:
    """What is known of one operand."""
    operand = node.operands[position]
    source = scene.nodes[operand]
    if source.op == "constant":
        return f"operand {position} ({operand}) is {constant_text(source)}"
    relation = next((r for r in scene.relations if r.candidate == operand), None)
    if relation is not None:
        whole = " and ".join(dict.fromkeys(part.baseline for part in relation.parts))
        return f"operand {position} ({operand}) is the baseline's {whole}, {relation.text}"
    standing = scene.standing(operand)
    if standing.counterpart is None:
        return f"operand {position} ({operand}) has no counterpart in the baseline"
    return f"operand {position} ({operand}) is {relation_text(standing)}"


def constant_text(node: Node) -> str:
    """A constant's value."""
    data = node.attrs.get("data")
    if not isinstance(data, tuple):
        return "a large constant"
    return attr_text(data[0]) if len(data) == 1 else attr_text(data)


def name_of(scene: Scene, node: NodeId) -> str:
    """A node's id and op."""
    found = scene.nodes.get(node)
    return node if found is None or found.op in node else f"{found.op} {node}"
