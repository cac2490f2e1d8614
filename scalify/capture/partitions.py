"""How process groups cut up the mesh, from what every rank knows of them.

A rank knows the groups that it is in. Those along mesh axes belong to one of the mesh's own partitions.
Others were made by the user's code, one after the other and in the same order on all ranks, as PyTorch wants
it: groups that follow each other, are of one size and share no rank are taken together until they have all.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations

from scalify.ir.mesh import Groups, Mesh, groups_along

Members = tuple[int, ...]


def partitions(mesh: Mesh, known: Mapping[str, Members]) -> dict[str, Groups]:
    """For each group, by name, those like it. Names of groups that are in no partition are missing."""
    along = _along_axes(mesh)
    made = sorted((name for name in known if known[name] not in along), key=_order)
    found = {name: along[members] for name, members in known.items() if members in along}
    together: list[str] = []
    for name in made:
        if not _fits(known[name], [known[other] for other in together]):
            together = []
        together.append(name)
        groups = tuple(known[other] for other in together)
        if sum(map(len, groups)) == mesh.size:
            found |= dict.fromkeys(together, tuple(sorted(groups)))
            together = []
    return found


def _order(name: str) -> tuple[int, str]:
    """PyTorch numbers groups as they are made."""
    return (int(name), "") if name.isdecimal() else (-1, name)


def _fits(members: Members, others: Iterable[Members]) -> bool:
    return all(len(members) == len(other) and not set(members) & set(other) for other in others)


def _along_axes(mesh: Mesh) -> dict[Members, Groups]:
    """Every way in which groups along some axes cut up the mesh, by the members of each group."""
    found: dict[Members, Groups] = {}
    names = [name for name, _ in mesh.axes]
    for count in range(len(names) + 1):
        for chosen in combinations(names, count):
            partition = groups_along(mesh, chosen)
            for group in partition:
                found.setdefault(group, partition)
    return found
