"""Which input of the baseline is which of the candidate: by name, then by place, never by shape.

Names are compared as they stand, then without what wrappers insert, then without a prefix that all share.
Inputs whose names only count them (``arg3``, ``p3.4``) are paired by position. What is left over is paired
in order where both sides leave over equally many, and that is noted.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scalify.ir.graph import Node

_COUNTED = re.compile(r"(p|param|params|parameter|arg|args|Arg|input|primals|tangents)?[._]?\d+([._]\d+)*")
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
MANY_NAMES = 5


@dataclass(slots=True)
class Pairing:
    """Pairs (baseline, candidate), and what is left over. ``notes`` say what was assumed to pair them,
    ``guessed`` are those of the candidate that were paired because nothing else was left."""

    pairs: list[tuple[Node, Node]] = field(default_factory=list[tuple[Node, Node]])
    baseline: list[Node] = field(default_factory=list[Node])
    candidate: list[Node] = field(default_factory=list[Node])
    notes: list[str] = field(default_factory=list[str])
    guessed: list[Node] = field(default_factory=list[Node])

    def take(self, found: Sequence[tuple[Node, Node]]) -> None:
        """Move nodes from what is left over to the pairs."""
        self.pairs.extend(found)
        taken = {id(node) for pair in found for node in pair}
        self.baseline = [node for node in self.baseline if id(node) not in taken]
        self.candidate = [node for node in self.candidate if id(node) not in taken]


def name_of(node: Node) -> str:
    """What the program calls an input."""
    return str(node.attrs["name"])


def role_of(node: Node) -> str:
    """input, parameter or buffer."""
    return str(node.attrs["role"])


def distinguishes_roles(nodes: Sequence[Node]) -> bool:
    """Whether a program tells its parameters from its inputs; compiled ones call everything an input."""
    return any(role_of(node) != "input" for node in nodes)


def pair(baseline: Sequence[Node], candidate: Sequence[Node]) -> Pairing:
    """Pair the inputs of two programs."""
    pairing = Pairing(baseline=list(baseline), candidate=list(candidate))
    if all(map(_is_only_counted, (*baseline, *candidate))):
        _pair_by_place(pairing)
        return pairing
    pairing.take(_same_names(pairing, name_of))
    wrapped = _same_names(pairing, _unwrapped)
    if wrapped:
        pairing.take(wrapped)
        pairing.notes.append(f"names are compared without {', '.join(sorted(_WRAPPERS))}")
    _pair_without_prefix(pairing)
    _pair_in_order(pairing)
    return pairing


def _is_only_counted(node: Node) -> bool:
    return "position" in node.attrs and _COUNTED.fullmatch(name_of(node)) is not None


def _pair_by_place(pairing: Pairing) -> None:
    baseline, candidate = _placed(pairing.baseline), _placed(pairing.candidate)
    if baseline and len(baseline) == len(candidate):
        pairing.take(list(zip(baseline, candidate, strict=True)))
        pairing.notes.append("inputs without names of their own are paired by position")


def _placed(nodes: Sequence[Node]) -> list[Node]:
    """In the order of their positions, where all have one."""
    places = [node.attrs.get("position") for node in nodes]
    numbers = [place for place in places if isinstance(place, int)]
    if len(numbers) < len(places) or len(set(numbers)) < len(numbers):
        return list(nodes)
    return [node for _, node in sorted(zip(numbers, nodes, strict=True), key=lambda placed: placed[0])]


def _same_names(pairing: Pairing, spelled: Callable[[Node], str]) -> list[tuple[Node, Node]]:
    """Pairs of one name, as ``spelled`` says it, which no other input of a side has."""
    baseline, candidate = _unique(pairing.baseline, spelled), _unique(pairing.candidate, spelled)
    return [(baseline[name], node) for name, node in candidate.items() if name in baseline]


def _unique(nodes: Sequence[Node], spelled: Callable[[Node], str]) -> dict[str, Node]:
    names = list(map(spelled, nodes))
    count = Counter(names)
    return {name: node for name, node in zip(names, nodes, strict=True) if count[name] == 1}


def _unwrapped(node: Node) -> str:
    return ".".join(segment for segment in name_of(node).split(".") if segment not in _WRAPPERS)


def _pair_without_prefix(pairing: Pairing) -> None:
    """Pair names that differ by one prefix, where only one does for all that a side still has."""
    baseline, candidate = _modules(pairing.baseline), _modules(pairing.candidate)
    options = [
        (prefix, side, pairs)
        for side, (longer, shorter) in (
            ("candidate", (candidate, baseline)),
            ("baseline", (baseline, candidate)),
        )
        for prefix, pairs in _prefixes(longer, shorter).items()
        if len(pairs) == min(len(longer), len(shorter))
    ]
    if len(options) != 1:
        return
    prefix, side, pairs = options[0]
    pairing.take([(two, one) if side == "candidate" else (one, two) for one, two in pairs])
    pairing.notes.append(f"names of the {side} are compared without their prefix {prefix!r}")


def _modules(nodes: Sequence[Node]) -> dict[str, Node]:
    """Nodes that stand in modules: parameters and buffers, or what has a dotted name."""
    known = distinguishes_roles(nodes)
    return {
        name_of(node): node for node in nodes if (role_of(node) != "input" if known else "." in name_of(node))
    }


def _prefixes(longer: dict[str, Node], shorter: dict[str, Node]) -> dict[str, list[tuple[Node, Node]]]:
    found: dict[str, list[tuple[Node, Node]]] = {}
    for name, node in longer.items():
        for end in (place for place, letter in enumerate(name) if letter == "."):
            other = shorter.get(name[end + 1 :])
            if other is not None:
                found.setdefault(name[: end + 1], []).append((node, other))
    return found


def _pair_in_order(pairing: Pairing) -> None:
    """Pair what is left over, role by role, where both sides leave over equally many."""
    known = distinguishes_roles(pairing.baseline) and distinguishes_roles(pairing.candidate)
    roles = dict.fromkeys(map(role_of, pairing.candidate)) if known else (None,)
    for role in roles:
        baseline = _placed([n for n in pairing.baseline if role in (None, role_of(n))])
        candidate = _placed([n for n in pairing.candidate if role in (None, role_of(n))])
        if not candidate or len(baseline) != len(candidate):
            continue
        pairs = list(zip(baseline, candidate, strict=True))
        pairing.take(pairs)
        pairing.guessed.extend(candidate)
        shown = listed([f"{name_of(one)} with {name_of(other)}" for one, other in pairs])
        pairing.notes.append(f"names do not tell: paired in order {shown}")


def listed(names: Sequence[str]) -> str:
    """Some names for people: the first few, and how many more."""
    if len(names) <= MANY_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MANY_NAMES])} and {len(names) - MANY_NAMES} more"
