"""The values of a step: every tensor at every moment, with its sketch.

In: tensors, as operators read, make, view and overwrite them. Out: an id for each value, its row, its
sketch, and what has to be added to operators that were recorded before.

    y = x + 1          y is made                    value 1, from add
    z = y[0:2]         the same memory              value 2, from slice
    z.mul_(3)          z's bytes are overwritten    value 3, from mul_
    y.sum()            y was changed through z      value 4, another output of mul_, sketched now

A read never returns what was there earlier, and a write never touches the sketch of what was there. A
value that several operators wrote in parts depends on all of them: each gets what its predecessor left
as one more input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from magneton.profile.model import OpId, Role, Value, ValueId
from magneton.profile.sketches import Sketch
from magneton.record.torch.calls import Call
from magneton.record.torch.internals import tensor_identity, weak_tensor, write_counter
from magneton.record.torch.outside import Watch
from magneton.record.torch.patches import (
    LARGEST_SHARE,
    PATCHED,
    PatchOf,
    Pending,
    after_write,
    before_write,
    patch_sketch,
)
from magneton.record.torch.sketching import CAP, SketchOf, sketch_tensor
from magneton.record.torch.sources import Sources
from magneton.record.torch.storage import (
    Geometry,
    Held,
    Region,
    Storage,
    Storages,
    Write,
    geometry_of,
    region_of,
    same_elements,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A tensor object that was met, and as what. ``reference`` is weak and keeps its identity from reuse."""

    reference: object
    storage: Storage
    geometry: Geometry
    held: Held


class Values:
    """Values over all phases; storages and tensors of one phase."""

    def __init__(
        self,
        *,
        cap: int = CAP,
        sketch: SketchOf = sketch_tensor,
        patch: PatchOf | None = patch_sketch,
        results_only: bool = False,
    ) -> None:
        self.rows: list[Value] = []
        self.sketches: list[Sketch | None] = []
        self.extra_inputs: dict[OpId, list[ValueId]] = {}
        self.extra_outputs: dict[OpId, list[ValueId]] = {}
        self._cap = cap
        self._sketch_of_new = sketch
        self._patch = patch
        self._results_only = results_only  # what no operator computed gets no sketch
        self._storages = Storages()
        self._tensors: dict[int, _Seen] = {}
        self._sources = Sources({})
        self._counters: dict[int, int | None] = {}  # of lasting storages, when the last phase ended
        self._unsketched: set[ValueId] = set()
        self._linked: set[tuple[int, int, int]] = set()
        self._watch = Watch()

    def begin(self, sources: Sources) -> None:
        """Start a phase. Of what was known only named tensors that nobody has written to since stay known."""
        self._sources = sources
        self._tensors.clear()
        self._linked.clear()
        self._watch.clear()
        self.extra_inputs.clear()
        self.extra_outputs.clear()
        lasting = [t for t in sources.lasting() if self._storages.knows(t)]
        changed = {self._storages.of(t).storage_id for t in lasting if not self._is_unchanged(t)}
        kept = {self._storages.of(t).storage_id for t in lasting}
        self._storages.forget_all_but(frozenset(kept - changed))
        for tensor in filter(self._storages.knows, lasting):
            self._be_source_again(tensor)

    def _be_source_again(self, tensor: Tensor) -> None:
        """Whatever views of it the last phase made, in this one it is what it was when it was first met."""
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        source = storage.sources.get(geometry)
        if source is not None:
            now = len(storage.writes)
            storage.current[geometry] = Held(value_id=source, made=now, seen=now)

    def end(self) -> None:
        """A phase is over; what happens to named tensors until the next one is not traced."""
        self._counters = {id(t): write_counter(t) for t in self._sources.lasting()}
        self._tensors.clear()

    def notice(self, tensor: Tensor) -> None:
        """An operator takes or leaves ``tensor``: has anything but an operator written to it since?"""
        storage = self._storages.of(tensor)
        if self._watch.changed(tensor, storage):
            geometry = geometry_of(tensor)
            write = Write(op_id=None, region=region_of(geometry), value_id=self._next_id(), content=True)
            storage.writes.append(write)
            self._hold(tensor, storage, geometry, self._source(tensor, storage, sketched=True))
            self._watch.changed(tensor, storage)

    def read(self, tensor: Tensor) -> ValueId:
        """The value that ``tensor`` shows now, sketched."""
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        region = region_of(geometry)
        held = self._held(tensor, storage, geometry)
        if held is None or not storage.untouched(region, held.seen):
            return self._newer(tensor, storage, geometry, held)
        held.seen = len(storage.writes)
        if held.value_id in self._unsketched and storage.has_content(region):
            self._sketch(held.value_id, tensor)
        return held.value_id

    def read_behind(self, tensor: Tensor, results: Sequence[Tensor]) -> ValueId:
        """The value behind a view of ``tensor``: only writes to the bytes that ``results`` show count.

        A view moves nothing, so that a value first met here may stay without a sketch.
        """
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        held = self._held(tensor, storage, geometry)
        regions = [region_of(geometry_of(result)) for result in results]
        if held is None and storage.untouched(region_of(geometry), 0):
            return self._met_by_view(tensor, storage, geometry, regions)
        if held is None or not all(storage.untouched(region, held.seen) for region in regions):
            return self._partial(tensor, storage, geometry, regions)
        while held.previous and all(storage.untouched(region, held.previous.made) for region in regions):
            held = held.previous
        return held.value_id

    def make(self, tensor: Tensor, op_id: OpId, *, content: bool) -> ValueId:
        """An operator returned ``tensor`` in memory of its own; ``content`` is False for mere memory."""
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        if not storage.writes:
            made = Write(op_id=op_id, region=storage.whole(), value_id=self._next_id(), content=content)
            storage.writes.append(made)
        value_id = self._add(tensor, storage, "activation", "", op_id, sketched=content)
        self._hold(tensor, storage, geometry, value_id)
        return value_id

    def view(self, tensor: Tensor, op_id: OpId, base: Tensor) -> ValueId:
        """An operator returned ``tensor``, which shows memory of ``base``."""
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        value_id = self._add(tensor, storage, "activation", "", op_id, sketched=False)
        if storage.has_content(region_of(geometry)):
            self._sketch(value_id, tensor, base=base)
        self._hold(tensor, storage, geometry, value_id)
        return value_id

    def about_to_write(self, call: Call) -> tuple[Pending | None, ...]:
        """For each tensor that ``call`` writes to, what it may overwrite of larger ones that are sketched."""
        if self._patch is None or not call.written:
            return (None,) * len(call.written)
        storages = [self._storages.of(tensor) for tensor in call.written]
        once = len({storage.storage_id for storage in storages}) == len(storages)
        return tuple(
            before_write(call, tensor, storage.largest_sketched // LARGEST_SHARE)
            if once and storage.largest_sketched
            else None
            for tensor, storage in zip(call.written, storages, strict=True)
        )

    def overwrite(self, tensor: Tensor, op_id: OpId, pending: Pending | None = None) -> ValueId:
        """An operator gave new content to ``tensor``."""
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        write = Write(op_id=op_id, region=region_of(geometry), value_id=self._next_id(), content=True)
        storage.writes.append(write)
        if pending is not None:
            storage.remember(after_write(pending, tensor))
        value_id = self._add(tensor, storage, "activation", "", op_id, sketched=True)
        self._hold(tensor, storage, geometry, value_id)
        return value_id

    def is_known_memory(self, tensor: Tensor) -> bool:
        return self._storages.knows(tensor)

    def holds_result(self, tensor: Tensor) -> bool:
        """Whether an operator of this phase computed what ``tensor`` shows."""
        storage = self._storages.of(tensor)
        region = region_of(geometry_of(tensor))
        return any(
            storage.writes[place].content and storage.writes[place].op_id is not None
            for place in storage.writers(region)
        )

    def made_since(self, op_id: OpId, tensor: Tensor) -> bool:
        """Whether operators from ``op_id`` on computed anything of what ``tensor`` shows."""
        storage = self._storages.of(tensor)
        writes = (storage.writes[place] for place in storage.writers(region_of(geometry_of(tensor))))
        made = any(write.op_id >= op_id for write in writes if write.op_id is not None and write.content)
        return made or tensor.numel() == 0

    def _newer(self, tensor: Tensor, storage: Storage, geometry: Geometry, stale: Held | None) -> ValueId:
        region = region_of(geometry)
        places = tuple(storage.writers(region))
        if places:
            value_id = self._left_by(tensor, storage, geometry, places)
            if storage.has_content(region):
                self._sketch(value_id, tensor)
        else:
            value_id = self._source(tensor, storage, sketched=True)
        self._hold(tensor, storage, geometry, value_id, stale)
        return value_id

    def _met_by_view(
        self, tensor: Tensor, storage: Storage, geometry: Geometry, regions: Sequence[Region]
    ) -> ValueId:
        """A source. Of memory without a name only what is used is sketched: it may be a large cache."""
        role, _ = self._sources.describe(tensor)
        whole = region_of(geometry)
        shown = any(region.same_bytes(whole) for region in regions)
        value_id = self._source(tensor, storage, sketched=shown or role != "constant")
        self._hold(tensor, storage, geometry, value_id)
        return value_id

    def _partial(
        self, tensor: Tensor, storage: Storage, geometry: Geometry, regions: Sequence[Region]
    ) -> ValueId:
        """``tensor`` after the writes that ``regions`` show; it may have been written elsewhere since."""
        places = sorted({place for region in regions for place in storage.writers(region)}, reverse=True)
        if places:
            return self._left_by(tensor, storage, geometry, places)
        if (geometry, None) not in storage.partial:
            storage.partial[geometry, None] = self._source(tensor, storage, sketched=False)
        return storage.partial[geometry, None]

    def _left_by(
        self, tensor: Tensor, storage: Storage, geometry: Geometry, places: Sequence[int]
    ) -> ValueId:
        """A value that the writes at ``places`` left, newest first: one more output of the newest."""
        for newer, older in pairwise(places):
            self._link(storage, newer, older)
        key = geometry, places[0]
        op_id = storage.writes[places[0]].op_id
        if key not in storage.partial and op_id is None:
            storage.partial[key] = self._source(tensor, storage, sketched=False)
        elif key not in storage.partial and op_id is not None:
            value_id = self._add(tensor, storage, "activation", "", op_id, sketched=False)
            self.extra_outputs.setdefault(op_id, []).append(value_id)
            storage.partial[key] = value_id
        return storage.partial[key]

    def _link(self, storage: Storage, newer: int, older: int) -> None:
        """What ``older`` wrote goes through ``newer``, which overwrote another part of it."""
        link = (storage.storage_id, newer, older)
        into, source = storage.writes[newer], storage.writes[older]
        if link not in self._linked and into.op_id is not None and into.op_id != source.op_id:
            self._linked.add(link)
            self.extra_inputs.setdefault(into.op_id, []).append(source.value_id)

    def _source(self, tensor: Tensor, storage: Storage, *, sketched: bool) -> ValueId:
        role, name = self._sources.describe(tensor)
        value_id = self._add(tensor, storage, role, name, None, sketched=sketched)
        storage.sources[geometry_of(tensor)] = value_id
        return value_id

    def _add(
        self,
        tensor: Tensor,
        storage: Storage,
        role: Role,
        name: str,
        producer: OpId | None,
        *,
        sketched: bool,
    ) -> ValueId:
        value_id = self._next_id()
        region = region_of(geometry_of(tensor))
        self.rows.append(
            Value(
                value_id=value_id,
                role=role,
                name=name,
                shape=geometry_of(tensor).shape,
                dtype=str(tensor.dtype).removeprefix("torch."),
                producer=producer,
                storage_id=storage.storage_id,
                version=sum(write.region.overlaps(region) for write in storage.writes),
            )
        )
        self.sketches.append(None)
        if sketched:
            self._sketch(value_id, tensor)
        else:
            self._unsketched.add(value_id)
        return value_id

    def _next_id(self) -> ValueId:
        return ValueId(len(self.rows))

    def _sketch(self, value_id: ValueId, tensor: Tensor, base: Tensor | None = None) -> None:
        if self._results_only and not self._storages.of(tensor).writes:
            return
        known = self._known_sketch(tensor, base) or self._patched_sketch(tensor)
        self.sketches[value_id] = known or self._new_sketch(tensor, base)
        self._unsketched.discard(value_id)
        if self.sketches[value_id] is not None and tensor.numel() >= PATCHED:
            storage = self._storages.of(tensor)
            storage.largest_sketched = max(storage.largest_sketched, tensor.numel())

    def _known_sketch(self, tensor: Tensor, base: Tensor | None) -> Sketch | None:
        """Of a view that shows what an earlier one showed, as a transposed weight does in each step."""
        return None if base is None else self._sketch_of(tensor, tensor)

    def _patched_sketch(self, tensor: Tensor) -> Sketch | None:
        """Of a tensor that lies as an earlier one did, little of which has been overwritten since."""
        storage, geometry = self._storages.of(tensor), geometry_of(tensor)
        held = storage.current.get(geometry)
        known = None if held is None else self.sketches[held.value_id]
        if self._patch is None or held is None or known is None or known.count < PATCHED:
            return None
        changes = storage.changed(region_of(geometry), held.seen)
        return self._patch(known, tensor, changes) if changes else None

    def _new_sketch(self, tensor: Tensor, base: Tensor | None) -> Sketch | None:
        known = None if base is None else self._sketch_of(base, tensor)
        if known is not None and base is not None and base.is_contiguous() and tensor.is_contiguous():
            return known
        return self._sketch_of_new(tensor, cap=self._cap, rearranged_from=known)

    def _sketch_of(self, base: Tensor, tensor: Tensor) -> Sketch | None:
        """The sketch of ``base`` as it is now, if it has one and ``tensor`` shows all its elements."""
        geometry = geometry_of(base)
        if not same_elements(geometry, geometry_of(tensor)):
            return None
        storage = self._storages.of(base)
        held = self._held(base, storage, geometry)
        if held is None or not storage.untouched(region_of(geometry), held.seen):
            return None
        return self.sketches[held.value_id]

    def _held(self, tensor: Tensor, storage: Storage, geometry: Geometry) -> Held | None:
        """What is known of this very tensor; else of the last tensor that lay in the same way."""
        seen = self._tensors.get(tensor_identity(tensor))
        if seen is not None and seen.storage is storage and seen.geometry == geometry:
            region = region_of(geometry)
            if storage.untouched(region, seen.held.seen):
                return seen.held
        return storage.current.get(geometry)

    def _hold(
        self,
        tensor: Tensor,
        storage: Storage,
        geometry: Geometry,
        value_id: ValueId,
        previous: Held | None = None,
    ) -> None:
        now = len(storage.writes)
        held = Held(value_id=value_id, made=now, seen=now, previous=previous)
        storage.current[geometry] = held
        self._tensors[tensor_identity(tensor)] = _Seen(
            reference=weak_tensor(tensor), storage=storage, geometry=geometry, held=held
        )

    def _is_unchanged(self, tensor: Tensor) -> bool:
        if self._storages.of(tensor).writes:
            return False
        return id(tensor) not in self._counters or self._counters[id(tensor)] == write_counter(tensor)
