"""What ``scalify capture`` writes beside an exported graph: the mesh, the rank, the process groups.

``extra/scalify.json`` in the archive. Group names mean nothing by themselves; here each has the ranks of
all groups that were made like it, a partition of the mesh.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.mesh import SINGLE, Groups, Mesh
from scalify.load.torch_export.archive import Archive, Json
from scalify.load.torch_export.fields import array, damaged, integer, mapping, text

MEMBER = "extra/scalify.json"
SCHEMA = "scalify.capture"
VERSION = 1
RANKS_LIMIT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Whose program this is: one of ``mesh.size`` ranks, or a single device's.

    ``pure`` are operators of other libraries whose schema says that they write to nothing.
    """

    mesh: Mesh = SINGLE
    rank: int = 0
    groups: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    name: str = ""
    pure: frozenset[str] = frozenset()


def beside(archive: Archive) -> Beside:
    """What the archive says; nothing, if it was not written by a capture."""
    if not archive.has(MEMBER):
        return Beside()
    fields = archive.json(MEMBER)
    if fields.get("schema") != SCHEMA:
        return Beside()
    if integer(fields.get("version"), "the version") > VERSION:
        raise UnsupportedFormat(
            f"{archive.path.name} was captured by a newer scalify",
            hint="upgrade scalify, or capture it again",
        )
    mesh = _mesh(fields)
    rank = integer(fields.get("rank"), "the rank")
    if not 0 <= rank < mesh.size:
        raise damaged(f"rank {rank} of {mesh.size}")
    groups = mapping(fields.get("groups"), "groups")
    return Beside(
        mesh=mesh,
        rank=rank,
        groups=MappingProxyType({name: _groups(entry, mesh, name) for name, entry in groups.items()}),
        name=text(fields.get("name", ""), "the name"),
        pure=frozenset(text(target, "an operator") for target in array(fields.get("pure", []), "pure")),
    )


def as_json(beside: Beside) -> Json:
    """What ``beside`` reads back."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "name": beside.name,
        "mesh": [[name, size] for name, size in beside.mesh.axes],
        "rank": beside.rank,
        "pure": sorted(beside.pure),
        "groups": {name: [list(group) for group in groups] for name, groups in beside.groups.items()},
    }


def _mesh(fields: Json) -> Mesh:
    axes: list[tuple[str, int]] = []
    for entry in array(fields.get("mesh"), "the mesh"):
        pair = array(entry, "a mesh axis")
        if len(pair) != 2:
            raise damaged("a mesh axis is a name and a size")
        axes.append((text(pair[0], "an axis"), integer(pair[1], "an axis's size")))
    try:
        mesh = Mesh(axes=tuple(axes))
    except ValueError as error:
        raise InvalidGraph(f"damaged mesh: {error}", hint="capture it again") from error
    if mesh.size > RANKS_LIMIT:
        raise InvalidGraph(
            f"a mesh of {mesh.size} ranks; at most {RANKS_LIMIT} are read", hint="capture fewer"
        )
    return mesh


def _groups(value: object, mesh: Mesh, name: str) -> Groups:
    groups = tuple(
        tuple(integer(rank, "a rank") for rank in array(group, f"group {name}"))
        for group in array(value, f"group {name}")
    )
    ranks = [rank for group in groups for rank in group]
    if sorted(ranks) != list(range(mesh.size)) or len({len(group) for group in groups}) != 1:
        raise damaged(f"the groups like {name} are no partition of {mesh.size} ranks")
    return groups
