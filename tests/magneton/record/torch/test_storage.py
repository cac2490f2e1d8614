"""Which bytes a tensor shows, and who wrote them last."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from magneton.profile.model import OpId, ValueId
from magneton.record.torch.storage import (
    Geometry,
    Storage,
    Storages,
    Write,
    geometry_of,
    region_of,
    same_elements,
)

ELEMENTS = 48


@st.composite
def windows(draw: st.DrawFn) -> Tensor:
    """Any strided window on one storage of 48 numbers."""
    base = torch.arange(ELEMENTS, dtype=torch.float32)
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    room = ELEMENTS - 1
    strides: list[int] = []
    for size in shape:
        stride = draw(st.integers(0, room // max(1, size - 1))) if size > 1 else 1
        strides.append(stride)
        room -= stride * (size - 1)
    return base.as_strided(shape, strides, draw(st.integers(0, room)))


def places(tensor: Tensor) -> set[int]:
    return {int(number) for number in tensor.reshape(-1)}


@given(one=windows(), other=windows())
def test_overlap_is_exact(one: Tensor, other: Tensor):
    first, second = region_of(geometry_of(one)), region_of(geometry_of(other))
    assert first.overlaps(second) == bool(places(one) & places(other))
    assert second.overlaps(first) == first.overlaps(second)


@given(one=windows(), other=windows())
def test_covering_and_sameness_are_never_claimed_wrongly(one: Tensor, other: Tensor):
    first, second = region_of(geometry_of(one)), region_of(geometry_of(other))
    assert not first.covers(second) or places(other) <= places(one)
    if same_elements(geometry_of(one), geometry_of(other)):
        assert sorted(one.reshape(-1).tolist()) == sorted(other.reshape(-1).tolist())


@given(window=windows())
def test_distinct_bytes_of_a_window(window: Tensor):
    region = region_of(geometry_of(window))
    assert region.size_bytes >= 4 * len(places(window))
    assert region.size_bytes <= 4 * window.numel()
    assert region.covers(region)


def test_rearrangements_show_the_same_elements():
    base = torch.zeros(4, 6)
    for view in (base.T, base.view(2, 12), base.view(4, 3, 2).permute(2, 0, 1), base[None]):
        assert same_elements(geometry_of(base), geometry_of(view))
    assert same_elements(geometry_of(base[:, :3]), geometry_of(base[:, :3].T))
    for view in (base[1:], base[:, 1:], base[:1].expand(4, 6), base.view(torch.int32)):
        assert not same_elements(geometry_of(base), geometry_of(view))
    wave = torch.zeros(3, dtype=torch.complex64)
    assert not same_elements(geometry_of(wave), geometry_of(wave.conj()))


def test_an_empty_tensor_overlaps_nothing():
    base = torch.zeros(4, 6)
    nothing = region_of(geometry_of(base[:0]))
    assert not nothing.overlaps(region_of(geometry_of(base)))


def test_storages_are_told_apart_after_their_memory_is_reused():
    storages = Storages()
    addresses: set[int] = set()
    ids: set[int] = set()
    for _ in range(30):
        tensor = torch.zeros(1000)
        addresses.add(tensor.data_ptr())
        ids.add(storages.of(tensor).storage_id)
    assert len(addresses) < 30
    assert len(ids) == 30


def test_views_share_a_storage():
    storages, tensor = Storages(), torch.zeros(4, 6)
    assert not storages.knows(tensor)
    assert storages.of(tensor) is storages.of(tensor[1:].T) is storages.of(tensor.detach())
    assert storages.knows(tensor.view(-1))


def test_only_what_is_kept_is_known_in_the_next_phase():
    storages, kept, dropped = Storages(), torch.zeros(4), torch.zeros(4)
    known = storages.of(kept)
    before = storages.of(dropped)
    storages.forget_all_but(frozenset({known.storage_id}))
    assert storages.of(kept) is known
    assert storages.of(dropped).storage_id > before.storage_id


def written(*regions: tuple[int, int]) -> Storage:
    """A storage of bytes written from start to end by operators 0, 1, 2, ..."""
    storage = Storage(storage_id=0, reference=None, size_bytes=ELEMENTS)
    for place, (start, end) in enumerate(regions):
        region = region_of(stretch(start, end))
        write = Write(op_id=OpId(place), region=region, value_id=ValueId(place), content=place > 0)
        storage.writes.append(write)
    return storage


def stretch(start: int, end: int) -> Geometry:
    return Geometry(torch.uint8, start, (end - start,), (1,), False, False)


def test_writers_go_back_to_the_one_that_covers():
    storage = written((0, 48), (0, 8), (4, 12), (4, 6))
    assert tuple(storage.writers(region_of(stretch(0, 12)))) == (3, 2, 1, 0)
    assert tuple(storage.writers(region_of(stretch(4, 6)))) == (3,)
    assert tuple(storage.writers(region_of(stretch(6, 8)))) == (2,)
    assert tuple(storage.writers(region_of(stretch(20, 24)))) == (0,)
    assert tuple(storage.writers(region_of(stretch(0, 12)), since=2)) == (3, 2)
    assert storage.untouched(region_of(stretch(12, 20)), since=1)


def test_memory_without_content():
    storage = written((0, 48), (0, 8))
    assert storage.has_content(region_of(stretch(0, 20)))
    assert not storage.has_content(region_of(stretch(8, 20)))
    assert written().has_content(region_of(stretch(0, 4)))


def test_the_shadow_is_never_read():
    far = region_of(Geometry(torch.float32, 1 << 40, (2, 3), (10, 2), False, False))
    near = region_of(Geometry(torch.float32, (1 << 40) + 1, (2, 3), (10, 2), False, False))
    assert not far.overlaps(near)
    assert far.overlaps(far)
