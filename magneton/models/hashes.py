"""What tells two models apart: a hash of the configuration and one of the weights."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from magneton.cache import cache_folder

VOLATILE = ("_name_or_path", "transformers_version")  # say where a file comes from, not what it is
SETTLED_S = 2.0  # a file changed later than this may change again within one tick of its time stamp


def config_hash(config: Mapping[str, object]) -> str:
    """Equal for equal configurations, whatever the order of keys."""
    kept = {key: value for key, value in config.items() if key not in VOLATILE}
    return hashlib.blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=16).hexdigest()


def weights_hash(files: tuple[Path, ...]) -> str:
    """Of the content of the files, in the order of their names.

    Hashing costs about a second a gigabyte, so that of each file is remembered under its path, size and
    times of change.
    """
    whole = hashlib.blake2b(digest_size=16)
    for path in sorted(files, key=lambda each: each.name):
        whole.update(f"{path.name} {_file_hash(path)}\n".encode())
    return whole.hexdigest()


def _file_hash(path: Path) -> str:
    path = path.resolve()
    stat = path.stat()
    state = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    name = hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()
    memory = cache_folder() / "hashes" / f"{name}.json"
    known = _remembered(memory)
    if known.get("state") == state and isinstance(digest := known.get("hash"), str):
        return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    if time.time() - max(stat.st_mtime, stat.st_ctime) > SETTLED_S:
        _remember(memory, {"state": state, "hash": digest})
    return digest


def _remembered(memory: Path) -> Mapping[str, object]:
    try:
        known = json.loads(memory.read_bytes())
    except (OSError, ValueError):
        return {}  # absent, or damaged: the file is hashed again
    return cast(Mapping[str, object], known) if isinstance(known, dict) else {}


def _remember(memory: Path, known: Mapping[str, object]) -> None:
    aside = memory.with_suffix(f".{os.getpid()}")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(known))
        aside.replace(memory)
    except OSError:  # a cache that cannot be written costs a second, not the answer
        with suppress(OSError):
            aside.unlink(missing_ok=True)
