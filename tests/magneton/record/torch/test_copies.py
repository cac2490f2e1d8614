"""Copies of arguments: as many as push each other out of the cache, and each like the original."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from magneton.record.torch.copies import (
    FOREIGN,
    MOST_COPIES,
    READS_NOTHING,
    TIMES_THE_CACHE,
    TOO_LARGE,
    TOO_SMALL,
    UNKNOWN,
    WRITES,
    copied,
    last_level_bytes,
    processor_cache_bytes,
)
from magneton.record.torch.keys import operator_key

aten = torch.ops.aten
KIB = 1024


@given(elements=st.integers(64, 4096), cache_bytes=st.integers(1, 64 * KIB))
def test_between_two_uses_of_a_copy_several_times_the_cache_goes_by(elements: int, cache_bytes: int):
    x = torch.randn(elements)
    sets, reason = copied(aten.relu.default, (x,), {}, cache_bytes=cache_bytes)
    others_bytes = (len(sets) - 1) * x.numel() * x.element_size()
    assert reason == ""
    assert others_bytes >= TIMES_THE_CACHE * cache_bytes
    assert others_bytes < TIMES_THE_CACHE * cache_bytes + x.numel() * x.element_size()


def test_copies_hold_the_same_and_lie_elsewhere():
    x = torch.randn(32, 16)
    (given_args, _), (args, _), *_ = copied(aten.mm.default, (x, x.t()), {}, cache_bytes=KIB)[0]
    assert given_args[0] is x
    assert args[0].equal(x) and args[1].equal(x.t())
    assert args[0].data_ptr() != x.data_ptr()


def test_arguments_that_share_memory_share_it_in_each_copy():
    whole = torch.randn(4, 64)
    left, right = whole[1, :32], whole[1, 16:48]
    sets, _ = copied(aten.add.Tensor, (left, right), {}, cache_bytes=KIB)
    for args, _ in sets[1:]:
        assert args[0][16:].data_ptr() == args[1].data_ptr()
        args[0][20] = 7.0
        assert args[1][4] == 7.0


def test_of_a_large_tensor_only_what_is_in_use_is_copied():
    cache = torch.zeros(1 << 20)
    view = cache[5000:5016]
    sets, reason = copied(aten.relu.default, (view,), {}, cache_bytes=4 * KIB)
    assert reason == ""
    assert sets[1][0][0].untyped_storage().nbytes() < 256


def test_a_copy_has_the_key_of_the_original_and_gives_the_same_result():
    base = torch.arange(400.0).view(20, 20)
    arguments: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (aten.mm.default, (base[3:7, 2:9], base.t()[4:11]), {}),
        (aten.index.Tensor, (base, [torch.tensor([1, 5, 2])]), {}),
        (aten.cat.default, ([base[1], base[2]], 0), {}),
        (aten.sum.dim_IntList, (base.expand(3, 20, 20), [0]), {"dtype": torch.float64}),
        (aten.clamp.Tensor, (base,), {"min": torch.tensor(3.0)}),
    ]
    for func, args, kwargs in arguments:
        sets, reason = copied(func, args, kwargs, cache_bytes=KIB)
        assert reason == "" and len(sets) > 1
        for some, named in sets:
            assert operator_key(func, some, named) == operator_key(func, args, kwargs)
            assert func(*some, **named).equal(func(*args, **kwargs))


@pytest.mark.parametrize(
    ("func", "args", "reason"),
    [
        (aten.add_.Tensor, (torch.zeros(64), 1), WRITES),
        (aten.relu.default, (torch.zeros(64).to_sparse(),), FOREIGN),
        (aten.abs.default, (torch.zeros(64, dtype=torch.complex64).conj(),), FOREIGN),
        (aten.relu.default, (torch.zeros(0),), READS_NOTHING),
        (aten.zeros.default, ([4],), READS_NOTHING),
        (aten.relu.default, (torch.zeros(1),), TOO_SMALL),
    ],
)
def test_what_stays_warm_says_why(func: Any, args: Any, reason: str):
    sets, why = copied(func, args, {}, cache_bytes=64 * MOST_COPIES)
    assert why == reason
    assert len(sets) == 1 and sets[0][0] == args


def test_a_cache_of_unknown_size_cannot_be_passed_by():
    assert copied(aten.relu.default, (torch.zeros(64),), {}, cache_bytes=0)[1] == UNKNOWN


def test_copies_keep_to_their_share_of_memory():
    x = torch.zeros(KIB)
    assert copied(aten.relu.default, (x,), {}, cache_bytes=8 * KIB, cap_bytes=32 * KIB)[1] == ""
    assert copied(aten.relu.default, (x,), {}, cache_bytes=8 * KIB, cap_bytes=31 * KIB)[1] == TOO_LARGE


def describe(folder: Path, index: int, level: str, size: str) -> None:
    place = folder / f"index{index}"
    place.mkdir()
    (place / "level").write_text(f"{level}\n")
    (place / "size").write_text(f"{size}\n")


def test_the_last_cache_is_the_one_of_the_highest_level(tmp_path: Path):
    describe(tmp_path, 0, "1", "48K")
    describe(tmp_path, 1, "1", "32K")
    describe(tmp_path, 2, "2", "2048K")
    describe(tmp_path, 3, "3", "105M")
    assert processor_cache_bytes(tmp_path) == 105 << 20


def test_a_cache_that_is_not_told_is_none(tmp_path: Path):
    assert processor_cache_bytes(tmp_path / "missing") == 0
    describe(tmp_path, 0, "three", "48K")
    describe(tmp_path, 1, "3", "lots")
    (tmp_path / "index2").mkdir()
    assert processor_cache_bytes(tmp_path) == 0
    assert last_level_bytes(torch.device("cpu")) >= 0
