import shutil
import subprocess
import sys
from pathlib import Path

import magneton
from magneton.worker import boot

PACKAGE = Path(magneton.__file__).parent

AS_A_FOREIGN_INTERPRETER = """
import runpy, sys
boot = sys.argv[1]
sys.path.insert(0, boot.rpartition("/")[0])  # as Python does with the folder of a script
runpy.run_path(boot, run_name="__mp_main__")
import magneton.worker.family
print(magneton.worker.family.__file__)
for hidden in ("neighbour", "family"):
    try:
        __import__(hidden)
    except ImportError:
        continue
    print("visible:", hidden)
"""


def test_only_the_package_becomes_importable(tmp_path: Path):
    """A copy in another place, with a neighbour as in a folder of installed packages."""
    worker = tmp_path / "site" / "magneton" / "worker"
    worker.parent.mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", worker.parent)
    shutil.copytree(PACKAGE / "worker", worker)
    (tmp_path / "site" / "neighbour.py").touch()

    printed = subprocess.run(
        [sys.executable, "-I", "-S", "-c", AS_A_FOREIGN_INTERPRETER, str(worker / "boot.py")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed.splitlines() == [str(worker / "family.py")]


def test_importing_it_does_nothing():
    assert boot.__name__ not in ("__main__", "__mp_main__")
    assert sys.modules["magneton"] is magneton


def test_without_a_parent_it_ends_by_itself():
    """The end of its input is the end of the worker, here before the first command."""
    ended = subprocess.run(
        [sys.executable, boot.__file__],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode != 0 and ended.stdout == b""
