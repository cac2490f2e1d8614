"""A worker stays within its limits and goes with its parent, in processes of their own."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from scalify_workers import ended_within, request, worker

from scalify.verdict import Reason
from scalify.worker.client import Prover


def ran(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_more_memory_than_allowed_is_not_to_be_had():
    code = "from scalify.worker.limits import limit\nlimit(300_000_000, 60)\nx = bytearray(400_000_000)"
    assert "MemoryError" in ran(code).stderr


def test_processor_time_ends_even_where_nobody_watches_the_clock():
    code = "import scalify.worker.limits as limits\nlimits.limit(10**9, -4)\nwhile True: pass"
    assert ran(code).returncode == -signal.SIGXCPU


def test_limits_only_ever_get_tighter():
    code = (
        "import resource\nfrom scalify.worker.limits import limit\n"
        "limit(300_000_000, 60)\nlimit(10**12, 10**6)\n"
        "print(resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    assert ran(code).stdout == "300000000 0\n"


@pytest.mark.parametrize("memory_bytes", [30_000_000, 50_000_000, 80_000_000])
def test_too_little_memory_even_to_begin_is_an_answer(memory_bytes: int):
    with Prover(request(memory_bytes=memory_bytes)) as prover:
        result = prover.result()
    assert result.reason is Reason.KILLED
    assert "memory limit" in result.detail


def test_a_worker_does_not_outlive_its_parent(tmp_path: Path):
    """Not even one that is killed, and whatever the worker is doing."""
    busy = "from scalify.worker.limits import leave_with_parent\nleave_with_parent(0)\nwhile True: pass"
    boot = worker(tmp_path, busy)
    parent = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
from pathlib import Path
from scalify_workers import request
from scalify.worker.client import Prover
prover = Prover(request(), boot=Path({str(boot)!r}))
print(prover.pid, flush=True)
prover.result()
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
    assert ended_within(pid, 10.0)
