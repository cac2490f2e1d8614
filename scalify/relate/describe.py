"""Relations for people: one row for all inputs that lie alike, layer by layer or name by name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scalify.relate.model import InputRelation, Relations
from scalify.relate.pairing import listed

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Inputs of the candidate that lie in the same way. ``names`` is a name, a pattern, or some names."""

    names: str
    text: str
    count: int
    stated: bool = False

    def __str__(self) -> str:
        ending = f" ({self.count} inputs)" if self.count > 1 else ""
        return f"{self.names}: {self.text}{', as stated' if self.stated else ''}{ending}"


def describe(relations: Relations) -> tuple[Row, ...]:
    """A row for each way of lying and each pattern of names (``layers.*.q_proj.weight``), in order.

    Inputs that share a way but no pattern stand in one row.
    """
    groups: dict[tuple[str, bool], dict[str, list[InputRelation]]] = {}
    for relation in relations.inputs:
        patterns = groups.setdefault((relation.text, relation.stated), {})
        patterns.setdefault(_NUMBER.sub("*", relation.name), []).append(relation)
    rows: list[Row] = []
    for (text, stated), patterns in groups.items():
        rows.extend(
            Row(names=pattern, text=text, count=len(members), stated=stated)
            for pattern, members in patterns.items()
            if len(members) > 1
        )
        single = [members[0] for members in patterns.values() if len(members) == 1]
        if single:
            rows.append(Row(names=_names(single), text=text, count=len(single), stated=stated))
    return tuple(rows)


def _names(relations: Sequence[InputRelation]) -> str:
    return listed([relation.name for relation in relations])
