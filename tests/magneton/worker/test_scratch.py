import os
import shutil
import tempfile
import uuid
from pathlib import Path

import pytest
from toy_recording import toy_prepare, toy_worker

from magneton.errors import MagnetonError
from magneton.worker.client import WorkerClient
from magneton.worker.protocol import Prepared
from magneton.worker.scratch import SHARED_MEMORY, Scratch

ENVIRONMENTS = Path("/proc")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files of this process go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_worker_has_a_folder_for_temporary_files_that_goes_with_it(temporary: Path, tmp_path: Path):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path), Prepared, timeout_s=30)
        (folder,) = temporary.iterdir()
        (folder / "socket").touch()
        if ENVIRONMENTS.is_dir():
            assert f"TMPDIR={folder}".encode() in (ENVIRONMENTS / str(worker.pid) / "environ").read_bytes()
    assert not list(temporary.iterdir())


def test_one_that_cannot_be_started_leaves_none(temporary: Path, tmp_path: Path):
    with pytest.raises(MagnetonError, match="cannot start"):
        WorkerClient(name="toy", python=tmp_path / "python", log=tmp_path / "worker.log", environment={})
    assert not list(temporary.iterdir())


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="no shared memory with names here")
def test_shared_memory_that_carries_the_token_is_removed(temporary: Path):
    scratch = Scratch.new(uuid.uuid4().hex)
    own, other = (SHARED_MEMORY / f"magneton-test-{token}.shm" for token in (scratch.token, uuid.uuid4().hex))
    own.touch()
    other.touch()
    try:
        scratch.remove()
        scratch.remove()
        assert (own.exists(), other.exists()) == (False, True)
    finally:
        other.unlink()


def test_what_was_compiled_is_kept_for_the_next_run(temporary: Path, monkeypatch: pytest.MonkeyPatch):
    scratch = Scratch.new("token")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    assert Path(scratch.environment()["TORCHINDUCTOR_CACHE_DIR"]).parent == temporary
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    assert scratch.environment()["TORCHINDUCTOR_CACHE_DIR"] == "/elsewhere"
    assert scratch.environment()["TMPDIR"] == str(scratch.folder)


def test_no_folder_for_temporary_files(temporary: Path):
    shutil.rmtree(temporary)
    with pytest.raises(
        MagnetonError, match=f"cannot write into {temporary}{os.sep}.*: No such file"
    ) as caught:
        Scratch.new("token")
    assert "TMPDIR" in caught.value.hint
