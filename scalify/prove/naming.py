"""Names for index maps, views and operations: egglog joins on them, Python knows what they stand for."""

from scalify.layout.maps import IndexMap, Shape
from scalify.layout.views import View, same


class Names:
    """Each map and view under one short name, given in the order of first use."""

    def __init__(self) -> None:
        self._maps: dict[IndexMap, str] = {}
        self._views: dict[View, str] = {}
        self._ops: dict[str, str] = {}
        self.maps: dict[str, IndexMap] = {}
        self.ops: dict[str, str] = {}
        self.views: dict[str, View] = {}

    def of_map(self, index: IndexMap) -> str:
        """The name of a map."""
        name = self._maps.get(index)
        if name is None:
            name = f"m{len(self._maps)}"
            self._maps[index] = name
            self.maps[name] = index
        return name

    def of_view(self, view: View | None) -> str:
        """The name of a view; "" stands for none."""
        if view is None:
            return ""
        name = self._views.get(view)
        if name is None:
            name = f"v{len(self._views)}"
            self._views[view] = name
            self.views[name] = view
        return name

    def of_same(self, shape: Shape) -> str:
        """The name of the view of a tensor as itself."""
        return self.of_view(same(shape))

    def of_op(self, op: str) -> str:
        """Plain operations are their own names; what carries attributes gets a short one."""
        if op.isidentifier():
            self.ops[op] = op
            return op
        name = self._ops.setdefault(op, f"op-{len(self._ops)}")
        self.ops[name] = op
        return name
