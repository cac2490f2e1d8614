"""Memory that something else than an operator has written: NumPy sharing it, another library, C code.

No operator tells of such a write, so small tensors are looked at whenever an operator takes them, and their
bytes compared with what they were. Engines prepare batches that way: positions, tables of blocks, lengths.
"""

from zlib import crc32

import torch
from torch import Tensor

from magneton.record.torch.internals import unobserved
from magneton.record.torch.storage import Storage, geometry_of, has_storage, region_of

WATCHED = 1 << 14  # elements; what is larger is data, and made by operators


class Watch:
    """What the bytes of small tensors were when they were last looked at."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, object], tuple[int, int]] = {}  # writes known then, checksum

    def clear(self) -> None:
        self._seen.clear()

    def changed(self, tensor: Tensor, storage: Storage) -> bool:
        """Whether ``tensor`` holds something else than last time although no operator wrote to it."""
        if not is_watched(tensor):
            return False
        geometry = geometry_of(tensor)
        key = (storage.storage_id, geometry)
        known, checksum = self._seen.get(key), _checksum(tensor)
        self._seen[key] = len(storage.writes), checksum
        return (
            known is not None
            and known[1] != checksum
            and storage.untouched(region_of(geometry), since=known[0])
        )


def is_watched(tensor: Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and 0 < tensor.numel() <= WATCHED
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and has_storage(tensor)
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


def _checksum(tensor: Tensor) -> int:
    with unobserved("cpu"):
        flat = tensor.detach().contiguous().as_strided((tensor.numel(),), (1,))
        return crc32(flat.view(torch.uint8).numpy().data)
