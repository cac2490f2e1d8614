"""Which boards the framework means: ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` as CUDA reads them.

Entries are indices, or identities and beginnings of them; the first that names nothing hides itself
and all after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magneton.meters.board import BoardForbidden, board_count, open_board
from magneton.meters.sensors import SensorAbsent, SensorUnusable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A board that CUDA counts. ``refusal``: why it cannot be opened; then nothing else is known of it."""

    index: int  # NVML's
    name: str = ""
    uuid: str = ""
    sliced: bool = False
    refusal: SensorAbsent | SensorUnusable | None = None


def board_indices(nvml: Any, device: str, environment: Mapping[str, str]) -> tuple[int, ...]:
    """The NVML indices of one device ("cuda:1") or of several joined by commas, each once."""
    known: list[_Known] = []
    forbidden: BoardForbidden | None = None
    for index in range(board_count(nvml)):
        try:
            known.append(_known(nvml, index))
        except BoardForbidden as error:
            forbidden = forbidden or error
        except (SensorAbsent, SensorUnusable) as error:
            known.append(_Known(index=index, refusal=error))
    try:
        return tuple(dict.fromkeys(_index(known, one.strip(), environment) for one in device.split(",")))
    except _NotFound as error:
        raise forbidden or error from None


class _NotFound(SensorAbsent):
    """No board that may be used is meant."""


def _known(nvml: Any, index: int) -> _Known:
    board = open_board(nvml, index)
    try:
        sliced = _sliced(nvml, board.handle)
        return _Known(index=index, name=board.name, uuid=board.uuid, sliced=sliced)
    finally:
        board.close()


def _sliced(nvml: Any, handle: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:  # most parts cannot be sliced; one that is lost says so when it is opened
        return False
    return current == 1


def _index(known: Sequence[_Known], device: str, environment: Mapping[str, str]) -> int:
    kind, _, ordinal_text = device.partition(":")
    if kind != "cuda" or not (ordinal_text or "0").isdecimal():
        raise SensorAbsent(f"NVML reads NVIDIA boards, not {device!r}", hint="run on a device such as cuda:0")
    ordinal = int(ordinal_text or "0")
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    entries = [str(index) for index in range(len(known))] if visible is None else visible.split(",")
    if ordinal >= len(entries):
        shown = "" if visible is None else f", and CUDA_VISIBLE_DEVICES is {visible!r}"
        raise _NotFound(
            f"there is no {device}: NVIDIA boards: {len(known)}{shown}",
            hint="choose a device that is visible",
        )
    found = [_named(known, entry.strip(), environment) for entry in entries[: ordinal + 1]]
    board = found[ordinal]
    if board.sliced:
        raise SensorUnusable(
            f"{device} is a slice of {board.name}: MIG is on, and a board has one energy counter",
            hint="measure on a board without MIG, or use --meter counted:bytes",
        )
    return board.index


def _named(known: Sequence[_Known], entry: str, environment: Mapping[str, str]) -> _Known:
    if entry.startswith("MIG"):
        raise SensorUnusable(
            f"CUDA_VISIBLE_DEVICES names the MIG slice {entry!r}, and a board has one energy counter for all",
            hint="measure on a whole board, or use --meter counted:bytes",
        )
    if entry.isdecimal():
        _check_order(known, environment)
        _check_counted(known[: int(entry) + 1])
        matching = [board for place, board in enumerate(known) if place == int(entry)]
    else:
        matching = [board for board in known if entry and board.uuid.startswith(entry)]
    if len(matching) != 1:
        raise _NotFound(
            f"CUDA_VISIBLE_DEVICES names {entry!r}, which is not one of the {len(known)} NVIDIA boards",
            hint="list them with nvidia-smi -L",
        )
    return matching[0]


def _check_order(known: Sequence[_Known], environment: Mapping[str, str]) -> None:
    """CUDA numbers boards by speed unless told otherwise, NVML by bus: with unlike boards the two differ."""
    names = [board.name for board in known if board.refusal is None]
    if len(set(names)) > 1 and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise SensorUnusable(
            f"boards differ ({', '.join(names)}), so CUDA may number them unlike NVML",
            hint="set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name a board by its UUID in CUDA_VISIBLE_DEVICES",
        )


def _check_counted(boards: Sequence[_Known]) -> None:
    """Whether CUDA counts a board that is lost depends on when it was: behind one, numbers mean nothing."""
    for board in boards:
        if board.refusal is not None:
            raise board.refusal
