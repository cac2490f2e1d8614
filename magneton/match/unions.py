"""Disjoint sets of small integers, the smallest of each set standing for it."""


class Unions:
    """Sets only ever merge; ``merges`` counts how often, so that a caller can tell when nothing changed."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))
        self.merges = 0

    def __len__(self) -> int:
        return len(self._parent)

    def add(self) -> int:
        """A new element, alone in its set."""
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def find(self, element: int) -> int:
        parent = self._parent
        while parent[element] != element:
            parent[element] = parent[parent[element]]
            element = parent[element]
        return element

    def union(self, one: int, other: int) -> int:
        first, second = sorted((self.find(one), self.find(other)))
        if first != second:
            self._parent[second] = first
            self.merges += 1
        return first
