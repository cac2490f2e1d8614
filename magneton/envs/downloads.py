"""What was downloaded outlives an installation that did not: the next attempt begins with it.

pip keeps a download only when everything is downloaded (``pip download``, ``pip wheel``), or when the index
allows it to (its own cache), and clears its temporary folder when it fails. So each wheel that appears in
that folder gets a second name in ours at once, and is looked at before it is used: it may have been cut off.

Between a wheel in an index and the same wheel in a folder pip takes the index's. It prefers the higher build
number, so ours gets one; nothing else changes for pip's resolver, and pip records build numbers nowhere.
"""

import os
import shutil
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

BUILD = "999999999999kept"  # higher than a date
PARTS = 5  # of a wheel's name without build number: name, version, Python, ABI, platform


def keep(temporary: Path, downloads: Path) -> None:
    """A name in ``downloads`` for each wheel in a folder in ``temporary``, finished or still growing."""
    with suppress(OSError):
        for wheel in tuple(temporary.glob("*/*.whl")):
            with suppress(OSError):  # gone again, or named already
                os.link(wheel, downloads / preferred(wheel.name))


def preferred(name: str) -> str:
    """The same wheel under a name that pip prefers."""
    parts = name.split("-")
    if not PARTS <= len(parts) <= PARTS + 1:
        return name
    return "-".join((*parts[:2], BUILD, *parts[-3:]))


def use_leftovers(temporary: Path, downloads: Path) -> bool:
    """Prepare both folders for an attempt; whether ``downloads`` holds wheels of earlier ones."""
    downloads.mkdir(parents=True, exist_ok=True)
    keep(temporary, downloads)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(exist_ok=True)
    discard_broken(downloads, thorough=True)
    return any(downloads.iterdir())


def discard_broken(downloads: Path, *, thorough: bool) -> None:
    """Remove what was cut off, so that it takes no room; ``thorough``: also what is damaged, which takes
    reading it all."""
    for wheel in downloads.iterdir():
        if not is_whole(wheel, thorough=thorough):
            wheel.unlink()


def is_whole(wheel: Path, *, thorough: bool) -> bool:
    """Whether nothing of it is missing, or damaged. What lists a wheel's content stands at its end."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            has_record = any(name.endswith(".dist-info/RECORD") for name in archive.namelist())
            return has_record and (not thorough or archive.testzip() is None)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        return False
