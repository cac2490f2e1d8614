"""Installations by real pip into real virtual environments, from packages made here."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import toy_environment
from toy_environment import pip_environment, toy_description, toy_place, toy_variant
from toy_recording import alive, await_true
from wheels import PADDING_BYTES, Index, serving, write_sdist, write_wheel

from magneton.envs.build import build
from magneton.envs.consent import Conversation
from magneton.envs.interpreter import Named, versions_in
from magneton.envs.lock import InUse, locked
from magneton.envs.place import Environment, environment_for, folders_of, is_ready, states
from magneton.envs.remove import remove
from magneton.envs.use import in_use, interpreters
from magneton.errors import MagnetonError
from magneton.record.progress import NoProgress
from magneton.system import Step, SystemDescription, Variant
from magneton.worker.family import descendants

SILENT = Conversation()
STEPS = Variant(
    requirements=("toyserver==1.0", "toyextra>=2"),
    steps=(
        Step(install=("toyserver==1.0",)),
        Step(install=("toyextra==2.1",), with_dependencies=False),
        Step(remove=("toyharm", "toynothing")),
    ),
    size_bytes=1000,
)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    folder = tmp_path / "links"
    folder.mkdir()
    write_wheel(folder, "toyserver", "1.0", ("toyneed", "toyharm"))
    write_wheel(folder, "toyserver", "2.0")
    write_wheel(folder, "toyneed", "3.0")
    write_wheel(folder, "toyharm", "1.0")
    write_wheel(folder, "toyextra", "2.1", ("a-package-nobody-has",))
    return folder


@pytest.fixture
def pip(tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip sees ``links`` alone; returns the folder of environments."""
    for key in toy_environment.PIP_SETTINGS:
        monkeypatch.delenv(key, raising=False)
    for key, value in pip_environment(tmp_path / "cache", str(links)).items():
        monkeypatch.setenv(key, value)
    return tmp_path / "cache" / "environments"


@pytest.fixture
def index(links: Path, pip: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """The same packages, but pip has to load them."""
    del pip
    with serving(links) as served:
        monkeypatch.setenv("PIP_FIND_LINKS", served.address)
        yield served


def made(environment: Environment) -> Path:
    with in_use(environment, SILENT, NoProgress()) as python:
        return python


class Installer(subprocess.Popen[str]):
    """Another magneton that installs the toy."""

    def __init__(self) -> None:
        super().__init__(
            [sys.executable, toy_environment.__file__],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )


@pytest.fixture
def installers() -> Generator[list[Installer], None, None]:
    started: list[Installer] = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


def test_an_environment_is_made_once_used_and_removed_without_a_trace(pip: Path) -> None:
    description = toy_description(STEPS)
    environment = environment_for("toy", description, "cpu")
    systems = {"toy": description}

    with interpreters(systems, "cpu", Named(), SILENT, NoProgress()) as pythons:
        python = pythons["toy"]
        found = versions_in(python, ("toyserver", "toyneed", "toyextra", "toyharm"))
        with pytest.raises(InUse, match=r"toy-cpu-\w+ is in use"):
            remove(folders_of("toy"))
    made_at_ns = (environment.folder / "magneton-ready.json").stat().st_mtime_ns

    assert python == environment.python
    assert found == {**found, "toyserver": "1.0", "toyneed": "3.0", "toyextra": "2.1"}
    assert "toyharm" not in found
    assert {place.name for place in pip.iterdir()} == {
        environment.folder.name,
        environment.lock.name,
        environment.log.name,
    }
    assert made(environment) == python
    assert (environment.folder / "magneton-ready.json").stat().st_mtime_ns == made_at_ns
    state, cuda = states("toy", description)
    assert (state.state, state.versions["toyserver"], cuda.state) == ("ready", "1.0", "not made")
    assert state.size_bytes is not None and state.size_bytes > 2 * PADDING_BYTES

    changed = toy_description(toy_variant("toyserver==2.0"))
    assert {each.state for each in states("toy", changed)} == {"not made", "outdated"}

    remove(folders_of("toy"))
    assert not pip.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_goes_on_from_what_was_downloaded(
    index: Index, installers: list[Installer], number: signal.Signals
) -> None:
    index.stalls = "toyneed"
    installers.append(first := Installer())
    assert index.halfway.wait(60)
    family = tuple(descendants(first.pid))
    first.send_signal(number)
    told = first.communicate(timeout=20)[1]

    assert len(family) >= 3
    assert await_true(lambda: not any(alive(pid) for pid in family))
    index.go_on.set()
    assert not is_ready(toy_place())
    if number == signal.SIGINT:
        assert told.startswith(
            "Interrupted: the installation of toy was stopped\nwhat was downloaded is kept"
        )
        assert not toy_place().folder.exists()

    index.stalls = None
    made(toy_place())

    assert index.fetched["toyserver-1.0-py3-none-any.whl"] == 1
    assert index.fetched["toyneed-3.0-py3-none-any.whl"] == 2  # it was cut off
    assert not toy_place().downloads.exists()


def test_two_at_once_make_one_environment(index: Index, installers: list[Installer]) -> None:
    index.stalls = "toyneed"
    installers.append(first := Installer())
    assert index.halfway.wait(60)
    installers.append(second := Installer())
    assert second.stdout is not None
    assert second.stdout.readline() == "another magneton is installing toy: waiting for it\n"
    index.go_on.set()

    for each in (first, second):
        assert each.communicate(timeout=60)[0].splitlines()[-1] == f"ready: {toy_place().python}"
    assert index.fetched["toyneed-3.0-py3-none-any.whl"] == 1


def test_a_pin_that_nobody_offers_is_named_and_leaves_nothing_usable(pip: Path) -> None:
    environment = toy_place(toy_variant("toyserver==9.9"))

    with pytest.raises(MagnetonError, match=r"no index that pip knows offers toyserver==9\.9") as caught:
        made(environment)

    assert "Could not find a version" in caught.value.hint
    assert str(environment.log) in caught.value.hint
    assert not environment.folder.exists()
    assert not environment.temporary.exists()
    remove(folders_of("toy"))
    assert not pip.exists()


FULL = "def build_wheel(*given, **more):\n    raise OSError(28, 'No space left on device')\n"
BACKEND = "from pathlib import Path\nimport time\n\ndef build_wheel(*given, **more):\n"
STUCK = BACKEND + "    Path({started!r}).touch()\n    time.sleep(100)\n"


def test_a_full_disk_is_told_as_such(pip: Path, links: Path) -> None:
    del pip
    write_sdist(links, "toybuilt", "1.0", FULL)

    with pytest.raises(MagnetonError, match="cannot install toy: the disk is full"):
        made(toy_place(toy_variant("toybuilt==1.0")))


def test_what_a_build_started_ends_with_the_installation(
    pip: Path, links: Path, tmp_path: Path, installers: list[Installer]
) -> None:
    del pip
    started = tmp_path / "started"
    (links / "toyneed-3.0-py3-none-any.whl").unlink()
    write_sdist(links, "toyneed", "3.0", STUCK.format(started=str(started)))
    installers.append(installer := Installer())
    assert await_true(started.exists, within_s=60)
    family = tuple(descendants(installer.pid))
    installer.kill()

    assert len(family) >= 4
    assert await_true(lambda: not any(alive(pid) for pid in family))
    with locked(toy_place().lock, shared=False):
        assert not is_ready(toy_place())


def test_where_there_is_no_pip_the_environment_gets_one(pip: Path) -> None:
    del pip
    environment = toy_place()

    with locked(environment.lock, shared=False) as lock:
        build(environment, lock, NoProgress(), lend_pip=False)

    assert is_ready(environment)
    assert {"toyneed", "pip"} <= versions_in(environment.python, ("pip", "toyneed")).keys()


def test_an_installation_that_lacks_what_is_required_does_not_count(pip: Path) -> None:
    del pip
    environment = toy_place(toy_variant("toyserver==1.0", requirements=["toyserver==2.0"]))

    with pytest.raises(MagnetonError, match=r"after all steps it lacks toyserver==2\.0"):
        made(environment)

    assert not environment.folder.exists()


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        (Variant(requirements=("toyserver",), size_bytes=10**18), "GB left; installing toy takes about"),
        (Variant(requirements=("toyserver",), python=">=4"), "toy needs Python >=4; the Python that runs"),
        (Variant(requirements=("toyserver",), python="three"), "asks for Python 'three'"),
        (Variant(requirements=("toy server",)), "'toy server' is no requirement"),
        (
            Variant(requirements=("toyserver",), steps=(Step(install=("--pre",)),)),
            "'--pre' is no requirement",
        ),
    ],
)
def test_what_cannot_end_well_is_refused_before_anybody_is_asked(
    pip: Path, variant: Variant, message: str
) -> None:
    systems: dict[str, SystemDescription] = {"toy": toy_description(variant)}

    with (
        pytest.raises(MagnetonError, match=message),
        interpreters(systems, "cpu", Named(), Conversation(say=pytest.fail), NoProgress()),
    ):
        pytest.fail("there is no interpreter")

    assert not pip.exists()


def test_what_fits_alone_but_not_together_is_refused(pip: Path) -> None:
    free_bytes = shutil.disk_usage(pip.parent.parent).free
    each = Variant(requirements=("toyserver",), size_bytes=int(0.5 * free_bytes))
    systems = {name: toy_description(each) for name in ("one", "other")}

    with (
        pytest.raises(MagnetonError, match="installing one and other takes about"),
        interpreters(systems, "cpu", Named(), Conversation(yes=True), NoProgress()),
    ):
        pytest.fail("there is no interpreter")


def test_a_cache_that_cannot_be_written_is_the_users_error(
    pip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del pip
    (tmp_path / "file").touch()
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "file" / "cache"))

    with pytest.raises(MagnetonError, match="cannot lock"):
        made(toy_place())
