"""Small packages made on the spot, and an index on this machine that can be made to stall."""

import io
import tarfile
import threading
import zipfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PADDING_BYTES = 300_000  # a wheel longer than what travels at once


def write_wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> Path:
    """A wheel with one module, and enough in it to be cut off halfway."""
    info = f"{name}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    files = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n",
        f"{name}/padding.txt": "x" * PADDING_BYTES,
        f"{info}/METADATA": "\n".join([*metadata, *(f"Requires-Dist: {each}" for each in requires), ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as archive:
        for path, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, content)
    return place


def write_sdist(folder: Path, name: str, version: str, backend: str) -> Path:
    """A source package whose build runs ``backend``, the text of a module."""
    pyproject = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    place = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(place, "w:gz") as archive:
        for path, content in {
            "pyproject.toml": pyproject,
            "backend.py": backend,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        }.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return place


class Index:
    """Counts what is fetched; a file that ``stalls`` stops halfway until it does not any more."""

    def __init__(self) -> None:
        self.address = ""
        self.fetched: Counter[str] = Counter()
        self.stalls: str | None = None
        self.halfway = threading.Event()
        self.go_on = threading.Event()

    def sent(self, name: str, write: Any, content: bytes) -> None:
        self.fetched[name] += 1
        if self.stalls is None or not name.startswith(self.stalls):
            write(content)
            return
        write(content[: len(content) // 2])
        self.halfway.set()
        self.go_on.wait(60)
        write(content[len(content) // 2 :])


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, index: Index, *args: Any, **more: Any) -> None:
        self.index = index
        super().__init__(*args, **more)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        self.index.sent(self.path.strip("/"), outputfile.write, source.read())

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextmanager
def serving(folder: Path) -> Generator[Index, None, None]:
    """The files of ``folder``, over HTTP, on this machine only."""
    index = Index()
    handler = partial(_Handler, index, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        index.address = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield index
        finally:
            index.go_on.set()
            server.shutdown()
            thread.join()
