"""Which values share memory, so that a write through one is seen through the others.

PyTorch's training graphs still write in place (``copy_`` into a slice of a cache). Here every value is a
place in a *storage*: the storage's node, seen through a chain of moves. Writing computes a new node for
the whole storage; reading a value of an older version replays its chain::

    cache = storage S            version 0: input
    row   = slice of S           chain: (slice)
    row.copy_(x)                 version 1: update_slice(input, x)
    read cache                   the node of version 1

Where the chain is not known (a reshape that may or may not have copied), a write makes everything that
may share the storage opaque: never guessed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from scalify.errors import InvalidGraph
from scalify.ir.graph import Node, NodeId
from scalify.load.torch_export.emit import Emitter, Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.program import Value, ValueName

_MOVES = frozenset({"slice", "reshape", "transpose", "broadcast"})
_LONGEST_CHAIN = 64
# Makes the node of what memory holds after a write that could not be followed, from what it held before.
Hidden = Callable[[Wire], Wire]


@dataclass(slots=True)
class _Storage:
    """Memory, as it was when last known whole (``settled``), and the writes since that are not understood.

    ``certain`` is false once a value exists that may or may not be part of it, or such a write happened.
    """

    wire: Wire
    version: int = 0
    settled: int = 0
    certain: bool = True
    unfollowed: list[tuple[int, Hidden]] = field(default_factory=list[tuple[int, Hidden]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A value: its storage, the moves that lead to it, and the node that it was at some version."""

    value: Value
    storage: _Storage
    chain: tuple[Node, ...] = ()
    known: bool = True
    wire: Wire
    version: int


@dataclass(slots=True)
class Memory:
    """Every value of the graph by name. ``tracked`` is false for graphs that write nothing in place."""

    emit: Emitter
    tracked: bool
    _places: dict[ValueName, _Place] = field(default_factory=dict[ValueName, _Place])

    def new(self, value: Value, wire: Wire) -> None:
        """A value in memory of its own."""
        self._places[value.name] = _Place(value=value, storage=_Storage(wire), wire=wire, version=0)

    def view(self, value: Value, of: ValueName, wire: Wire, certain: bool) -> None:
        """A value in the memory of another; ``certain`` says that it surely is."""
        if not self.tracked:
            self.new(value, wire)
            return
        base = self._place(of)
        chain = self._between(self.read(of), wire) if certain and base.known else None
        storage = base.storage
        if chain is None:
            storage.certain = False
        full = base.chain + (chain or ())
        known = chain is not None and len(full) <= _LONGEST_CHAIN
        if not known:
            storage.certain = False
        self._places[value.name] = _Place(
            value=value, storage=storage, chain=full, known=known, wire=wire, version=storage.version
        )

    def read(self, name: ValueName) -> Wire:
        """What a value is now."""
        place = self._place(name)
        storage = place.storage
        if place.version == storage.version:
            return place.wire
        wire = self._replayed(place)
        self._places[name] = replace(place, wire=wire, version=storage.version)
        return wire

    def described(self, name: ValueName) -> Value:
        """What the record says of a value."""
        return self._place(name).value

    def changed(self, name: ValueName) -> bool:
        """Whether the memory that a value names was written to."""
        return self._place(name).storage.version > 0

    def write(self, name: ValueName, wire: Wire, hidden: Hidden) -> None:
        """A value gets new contents. ``hidden`` makes the opaque node of what cannot be followed."""
        place = self._place(name)
        storage = place.storage
        whole = self._put_back(place, wire) if storage.certain else None
        storage.version += 1
        if whole is None:
            storage.unfollowed.append((storage.version, hidden))
            storage.certain = False
        else:
            storage.wire, storage.settled = whole, storage.version
            self._places[name] = replace(place, wire=wire, version=storage.version)

    def spoil(self, name: ValueName, hidden: Hidden) -> None:
        """A value's memory may have been written to by something that is not understood."""
        storage = self._place(name).storage
        storage.version += 1
        storage.certain = False
        storage.unfollowed.append((storage.version, hidden))

    def _place(self, name: ValueName) -> _Place:
        if name not in self._places:
            raise damaged(f"value {name} is used before it is made")
        return self._places[name]

    def _replayed(self, place: _Place) -> Wire:
        storage, wire = place.storage, place.wire
        if place.version < storage.settled:
            wire = storage.wire
            for move in place.chain:
                wire = self.emit.emit(move.op, wire, declared=move.type, attrs=move.attrs)
        for version, hidden in storage.unfollowed:
            if version > place.version:
                wire = hidden(wire)
        return wire

    def _between(self, start: Wire, end: Wire) -> tuple[Node, ...] | None:
        """The moves that lead from one node to another."""
        chain: list[Node] = []
        at: NodeId = end.id
        while at != start.id:
            node = self.emit.nodes[at]
            if node.op not in _MOVES or len(chain) > _LONGEST_CHAIN:
                return None
            chain.append(node)
            at = node.operands[0]
        return tuple(reversed(chain))

    def _put_back(self, place: _Place, wire: Wire) -> Wire | None:
        """The whole storage after a place in it changed; None where a move has no inverse."""
        before = [place.storage.wire]
        for move in place.chain:
            before.append(self.emit.emit(move.op, before[-1], declared=move.type, attrs=move.attrs))
        for move, old in zip(reversed(place.chain), reversed(before[:-1]), strict=True):
            restored = self._undone(move, old, wire)
            if restored is None:
                return None
            wire = restored
        return wire

    def _undone(self, move: Node, old: Wire, new: Wire) -> Wire | None:
        """``old`` with what ``move`` shows of it replaced by ``new``."""
        if move.op == "reshape":
            return self.emit.reshape(new, old.shape)
        if move.op == "transpose":
            perm = move.attrs["perm"]
            if not isinstance(perm, tuple):
                raise InvalidGraph("a transpose without a permutation", hint="export it again")
            return self.emit.transpose(new, [perm.index(dim) for dim in range(len(perm))])
        if move.op == "slice":
            return put(self.emit, old, new, _ints(move.attrs["starts"]), _ints(move.attrs["steps"]))
        return None


def _ints(value: object) -> tuple[int, ...]:
    """Of one rank's program: there are no other integers in it."""
    if not isinstance(value, tuple):
        raise InvalidGraph("a slice without bounds", hint="export it again")
    return tuple(entry for entry in value if isinstance(entry, int))


def put(emit: Emitter, old: Wire, new: Wire, starts: Sequence[int], steps: Sequence[int]) -> Wire:
    """``old`` with ``new`` at every ``step``-th place from ``start`` on, in every dimension."""
    axis = next((axis for axis, step in enumerate(steps) if step > 1 and new.shape[axis] > 1), None)
    if axis is None:
        return emit.emit("update_slice", old, new, attrs={"starts": tuple(starts)})
    start, step, count = starts[axis], steps[axis], new.shape[axis]
    lines = emit.slice(old, axis, start, start + (count - 1) * step + 1, step)
    rest = [0 if at == axis else first for at, first in enumerate(starts)]
    changed = put(emit, lines, new, rest, [1 if at == axis else by for at, by in enumerate(steps)])
    return _put_lines(emit, old, changed, axis, start, step)


def _put_lines(emit: Emitter, old: Wire, lines: Wire, axis: int, start: int, step: int) -> Wire:
    """All but the last line stand first in a block of ``step`` each; the last one may end what there is."""
    blocks = lines.shape[axis] - 1
    before, after = old.shape[:axis], old.shape[axis + 1 :]
    window = emit.slice(old, axis, start, start + blocks * step)
    split = emit.reshape(window, (*before, blocks, step, *after))
    first = emit.reshape(emit.slice(lines, axis, 0, blocks), (*before, blocks, 1, *after))
    put_first = emit.emit("update_slice", split, first, attrs={"starts": (0,) * len(split.shape)})
    window = emit.reshape(put_first, window.shape)
    for part, at in (window, start), (emit.slice(lines, axis, blocks, blocks + 1), start + blocks * step):
        starts = tuple(at if dim == axis else 0 for dim in range(len(old.shape)))
        old = emit.emit("update_slice", old, part, attrs={"starts": starts})
    return old
