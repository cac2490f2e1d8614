"""A worker's folder in, a ``Profile`` out.

The folder may be that of a worker that was killed: the last line of a file may be half a line, which is
dropped, and passes that never ran leave empty tables. What cannot be explained that way is an error.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TypeVar
from urllib.parse import unquote

import numpy as np

from magneton.errors import InvalidProfile
from magneton.profile.model import (
    BlockReading,
    Conditions,
    Doubt,
    IdlePower,
    Kernel,
    Operator,
    OpId,
    PowerSample,
    Profile,
    ReplayKey,
    ReplayReading,
    ScopeTime,
    Stack,
    Value,
)
from magneton.profile.origin import Origin
from magneton.profile.sketches import stack_sketches
from magneton.record.codec import CodecError, decode
from magneton.record.journal import (
    ORIGIN_FILE,
    OUTPUTS_FOLDER,
    TABLES,
    OperatorDuration,
    Rejected,
    Row,
    SketchRow,
    Stretch,
)
from magneton.workload import Phase

HINT = "the recording was cut short; record again"
REASONS = 3  # told of those for which windows were rejected
_STRETCHES: Mapping[Stretch, str] = {
    "block": "block{}",
    "replay": "window{} over operators",
    "idle": "window{} at rest",
}
R = TypeVar("R", bound=Row)


def read_journal(folder: Path) -> Profile:
    """Everything that was written into ``folder``, as one profile."""
    values = _by_id(folder, Value, lambda row: row.value_id)
    sketches = {row.value_id: row.sketch for row in _rows(folder, SketchRow)}
    durations = _durations(_rows(folder, OperatorDuration))
    operators = _by_id(folder, Operator, lambda row: row.op_id)
    return Profile(
        origin=_origin(folder),
        operators=tuple(
            replace(row, duration_s=durations[row.op_id]) if row.op_id in durations else row
            for row in operators
        ),
        values=values,
        sketches=stack_sketches([sketches.get(row.value_id) for row in values]),
        stacks=_rows(folder, Stack),
        keys=_by_id(folder, ReplayKey, lambda row: row.key_id),
        kernels=_rows(folder, Kernel),
        samples=_rows(folder, PowerSample),
        blocks=_rows(folder, BlockReading),
        replays=_rows(folder, ReplayReading),
        scopes=_rows(folder, ScopeTime),
        conditions=_rows(folder, Conditions),
        idle=_rows(folder, IdlePower),
        outputs=_outputs(folder),
        doubts=tuple(dict.fromkeys((*_rows(folder, Doubt), *_rejections(_rows(folder, Rejected))))),
    )


def _rows(folder: Path, kind: type[R]) -> tuple[R, ...]:
    path = folder / f"{TABLES[kind]}.jsonl"
    if not path.exists():
        return ()
    *lines, unfinished = path.read_bytes().split(b"\n")
    del unfinished  # empty, or the half line that a kill left
    try:
        return tuple([decode(kind, line) for line in lines])
    except CodecError as error:
        raise InvalidProfile(f"{path} is damaged: {error}", hint=HINT) from error


def _by_id(folder: Path, kind: type[R], id_of: Callable[[R], int]) -> tuple[R, ...]:
    """Rows in the order of their ids; of several with one id the last one holds."""
    latest = {id_of(row): row for row in _rows(folder, kind)}
    missing = next((number for number in range(len(latest)) if number not in latest), None)
    if missing is not None:
        raise InvalidProfile(f"{TABLES[kind]} in {folder} lack row {missing}", hint=HINT)
    return tuple(latest[number] for number in range(len(latest)))


def _durations(rows: Iterable[OperatorDuration]) -> dict[OpId, float]:
    seen: defaultdict[OpId, list[float]] = defaultdict(list)
    for row in rows:
        seen[row.op_id].append(row.duration_s)
    return {op_id: median(durations_s) for op_id, durations_s in seen.items()}


def _rejections(rows: Iterable[Rejected]) -> Iterable[Doubt]:
    """One doubt for all windows of one kind and phase, with the reasons that were met most often."""
    reasons: defaultdict[tuple[Stretch, Phase], Counter[str]] = defaultdict(Counter)
    for row in rows:
        reasons[row.kind, row.phase][row.why] += 1
    for (kind, phase), counts in reasons.items():
        count = counts.total()
        were = _STRETCHES[kind].format("" if count == 1 else "s") + (f" of {phase}" if phase else "")
        told = [f"{why} ({times})" if len(counts) > 1 else why for why, times in counts.most_common(REASONS)]
        more = [f"{len(counts) - REASONS} more reasons"] if len(counts) > REASONS else []
        verb = "was" if count == 1 else "were"
        yield Doubt(kind=f"{kind}-rejected", text=f"{count} {were} {verb} rejected: {'; '.join(told + more)}")


def _origin(folder: Path) -> Origin:
    path = folder / ORIGIN_FILE
    try:
        return decode(Origin, path.read_bytes())
    except FileNotFoundError as error:
        raise InvalidProfile(f"{folder} holds no recording: {ORIGIN_FILE} is missing", hint=HINT) from error
    except CodecError as error:
        raise InvalidProfile(f"{path} is damaged: {error}", hint=HINT) from error


def _outputs(folder: Path) -> dict[str, np.ndarray]:
    paths = sorted((folder / OUTPUTS_FOLDER).glob("*.npy"))
    return {unquote(path.stem): _load(path) for path in paths}


def _load(path: Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidProfile(f"{path} is damaged: {error}", hint=HINT) from error
