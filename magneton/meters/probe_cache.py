"""Probes that are kept: a board's sensors are watched once for each driver. An unsound file is no file.

One small JSON file a board in ``sensors`` of the cache folder, written aside and renamed.
"""

import json
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, cast

from magneton.meters.board import Board
from magneton.meters.clock import Clock
from magneton.meters.edges import LONGEST_PERIOD_S
from magneton.meters.probe import BoardProbe, probe_board

VERSION = 1
_LARGEST_BYTES = 4096
_MOST_FIELDS = 16


def probed_board(board: Board, clock: Clock, folder: Path | None) -> BoardProbe:
    """The probe that is kept for this board and driver in ``folder``, else a new one, which is kept."""
    if folder is None:
        return probe_board(board, clock)
    kept = kept_probe(folder, board.uuid, board.driver)
    if kept is not None:
        return kept
    probe = probe_board(board, clock)
    keep_probe(folder, board.uuid, board.driver, probe)
    return probe


def kept_probe(folder: Path, uuid: str, driver: str) -> BoardProbe | None:
    """None where there is none, or none that can be believed."""
    try:
        with _file(folder, uuid, driver).open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            return None
        row = json.loads(content)
        if not isinstance(row, dict) or (row["version"], row["uuid"], row["driver"]) != (
            VERSION,
            uuid,
            driver,
        ):
            return None
        return _probe(cast("dict[str, Any]", row["probe"]))
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def keep_probe(folder: Path, uuid: str, driver: str, probe: BoardProbe) -> None:
    """For next time. Where there is no room for it, there is none: probing again costs seconds."""
    content = {"version": VERSION, "uuid": uuid, "driver": driver, "probe": asdict(probe)}
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=".probe-", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1)
            Path(aside).replace(_file(folder, uuid, driver))
        finally:
            Path(aside).unlink(missing_ok=True)


def _file(folder: Path, uuid: str, driver: str) -> Path:
    """Named after the board for people, and after a digest of all of it for safety."""
    digest = sha256(f"{uuid}\n{driver}".encode()).hexdigest()[:16]
    return folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid)[:48]}-{digest}.json"


def _probe(row: dict[str, Any]) -> BoardProbe:
    """Raises one of the errors that ``kept_probe`` knows for what no probe can have found."""
    agreement = row["agreement"]
    if row["source"] not in ("counter", "power") or not isinstance(row["stale"], bool):
        raise ValueError("source")
    fields = row["fields"]
    if len(fields) > _MOST_FIELDS or not all(type(field) is int for field in fields):
        raise TypeError("fields")
    return BoardProbe(
        period_s=_within(row["period_s"], 1e-4, LONGEST_PERIOD_S),
        step_j=_within(row["step_j"], 1e-6, 1e6),
        poll_s=_within(row["poll_s"], 1e-4, LONGEST_PERIOD_S),
        fields=tuple(fields),
        agreement=None if agreement is None else _within(agreement, 1e-3, 1e3),
        noise=_within(row["noise"], 0.0, 1e3),
        stale=row["stale"],
        source=row["source"],
        probed_at=str(row["probed_at"])[:40],
    )


def _within(value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError("not a number")
    if not low <= value <= high:
        raise ValueError("out of range")
    return float(value)
