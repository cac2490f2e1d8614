import os
import time
from pathlib import Path

import pytest

from magneton.models.hashes import config_hash, weights_hash

LONG_AGO_S = 1_000_000_000.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MAGNETON_CACHE", str(folder))
    return folder


def weights(folder: Path, content: bytes, name: str = "model.safetensors") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_configurations_hash_ignores_order_and_origin():
    one = config_hash({"a": 1, "b": [2], "transformers_version": "5.0"})
    assert one == config_hash({"b": [2], "a": 1, "_name_or_path": "x"})
    assert one != config_hash({"a": 1, "b": [3]})


def test_changed_weights_have_another_hash(tmp_path: Path):
    before = weights_hash((weights(tmp_path, b"1234"),))
    after = weights_hash((weights(tmp_path, b"1235"),))
    assert before != after
    assert weights_hash((weights(tmp_path, b"1234"),)) == before


def test_shards_count_by_name_not_by_order(tmp_path: Path):
    one, two = weights(tmp_path, b"1", "a.safetensors"), weights(tmp_path, b"2", "b.safetensors")
    assert weights_hash((one, two)) == weights_hash((two, one))
    assert weights_hash((one, two)) != weights_hash((one,))


def settled(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that has not been touched for a while: the clock is moved, since a change of time cannot be."""
    now_s = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: now_s)
    return path


def test_the_hash_of_a_settled_file_is_remembered(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
):
    path = settled(weights(tmp_path, b"1234"), monkeypatch)
    first = weights_hash((path,))
    (memory,) = (cache / "hashes").iterdir()
    memory.write_text(memory.read_text().replace('"hash": "', '"hash": "remembered'))
    assert weights_hash((path,)) != first
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    assert weights_hash((path,)) == first


def test_a_file_that_was_just_written_is_hashed_again(tmp_path: Path, cache: Path):
    weights_hash((weights(tmp_path, b"1234"),))
    assert not (cache / "hashes").exists()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"state": 1, "hash": 2}'])
def test_a_damaged_memory_is_ignored(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str
):
    path = settled(weights(tmp_path, b"1234"), monkeypatch)
    first = weights_hash((path,))
    (memory,) = (cache / "hashes").iterdir()
    memory.write_text(damage)
    assert weights_hash((path,)) == first


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "file"))
    path = settled(weights(tmp_path, b"1234"), monkeypatch)
    assert weights_hash((path,)) == weights_hash((path,))
