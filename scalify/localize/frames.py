"""The line of a node's stack that a report names: the one on which right and wrong executions part.

In: both programs, a node, and nodes that are right. Out: how many frames out the line is. A line by which
others came in the same way, and were right, is innocent: it is in a function that was called from the wrong
place, or with the wrong value. So is a line that the baseline runs as well, where another implementation of a
method called it: then the candidate's implementation is named.
"""

from collections import defaultdict
from collections.abc import Iterable

from scalify.ir.graph import Graph, Node, Site

MOST_SHARED = 2
"""So few frames of shared code a method goes through, if the mistake is likely its own."""

Frames = tuple[Site, ...]


class Lines:
    """The lines of both programs, by the lines that led to them."""

    def __init__(self, baseline: Graph, candidate: Graph) -> None:
        self._given, self._own = _next_lines(baseline), _next_lines(candidate)
        self._of_baseline = {site for node in baseline.nodes for site in node.stack}

    def overriding(self, stack: Frames) -> int | None:
        """The frame of a method of which the baseline, from the same line, runs another of the same name."""
        for place in range(1, len(stack)):
            before, site = stack[:place], stack[place]
            if before not in self._given:
                return None
            if site not in self._given[before]:
                others = {each for each in self._given[before] if each.function == site.function}
                return place if others and not others & self._own[before] else None
        return None

    def is_new(self, stack: Frames) -> bool:
        """Whether only the candidate runs a line, in a method of which the baseline runs others there."""
        for place in range(1, len(stack)):
            before, site = stack[:place], stack[place]
            if site not in self._given.get(before, ()):
                return any(each.function == site.function for each in self._given.get(before, ()))
        return False

    def outward(self, node: Node, right: Iterable[Node]) -> int:
        """How many frames the line to name is out from the innermost one."""
        depth = _past_innocent(node, right)
        own = node.stack[: len(node.stack) - depth]
        place = self.overriding(own) if own and own[-1] in self._of_baseline else None
        near = place is not None and len(own) - 1 - place <= MOST_SHARED
        return len(node.stack) - 1 - place if near and place is not None else depth


def line_of(node: Node, depth: int) -> Site | None:
    """The line so many frames out."""
    return node.stack[-1 - depth] if 0 < depth < len(node.stack) else node.site


def in_counterpart(node: Node, given: Node, depth: int) -> int:
    """How many frames out the same place is in the stack of a counterpart, which may be other code."""
    if depth >= len(given.stack):
        return 0
    own, other = ([site.function for site in each.stack[len(each.stack) - depth :]] for each in (node, given))
    return depth if own == other else 0


def _next_lines(graph: Graph) -> dict[Frames, set[Site]]:
    found: dict[Frames, set[Site]] = defaultdict(set)
    for stack in {node.stack for node in graph.nodes}:
        for place, site in enumerate(stack):
            found[stack[:place]].add(site)
    return dict(found)


def _past_innocent(node: Node, right: Iterable[Node]) -> int:
    """Past all frames that right nodes of the same op share; past none where they share all of them.

    Then one line is right at one time and wrong at another.
    """
    alike = [each for each in right if each.op == node.op and each.id != node.id]
    for depth in range(1, len(node.stack) + 1):
        alike = [each for each in alike if each.stack[-depth:] == node.stack[-depth:]]
        if not alike:
            return depth - 1
    return 0
