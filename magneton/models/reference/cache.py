"""The key/value cache of the plain models: memory for all positions from the start, written in place.

Letters: B batch, T tokens of this call, S positions, K key/value heads, H head size.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much to hold: ``batch`` sequences of at most ``positions`` tokens."""

    batch: int
    positions: int
    dtype: torch.dtype
    device: str


class KeyValueCache(nn.Module):
    """Keys and values of one layer."""

    keys: Tensor  # [B, K, S, H]
    values: Tensor

    def __init__(self, kv_heads: int, head_dim: int, room: Room) -> None:
        super().__init__()
        shape = (room.batch, kv_heads, room.positions, head_dim)
        for name in ("keys", "values"):
            empty = torch.zeros(shape, dtype=room.dtype, device=room.device)
            self.register_buffer(name, empty, persistent=False)

    def forward(self, k_BKTH: Tensor, v_BKTH: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Write T tokens from position ``start`` on; all up to and with them come back, as views."""
        tokens = k_BKTH.shape[2]
        self.keys.narrow(2, start, tokens).copy_(k_BKTH)
        self.values.narrow(2, start, tokens).copy_(v_BKTH)
        return self.keys[:, :, : start + tokens], self.values[:, :, : start + tokens]

    def forget(self, start: int) -> None:
        """Zero everything from position ``start`` on, so that no step sees what a later one wrote."""
        self.keys[:, :, start:].zero_()
        self.values[:, :, start:].zero_()


def causal_mask(tokens: int, start: int, device: torch.device) -> Tensor | None:
    """What T new tokens after ``start`` others may look at [T, S]; None where one rule of torch's own does.

    From position 0 on that is ``is_causal``; a single token may look at everything.
    """
    if start == 0 or tokens == 1:
        return None
    return torch.ones(tokens, start + tokens, dtype=torch.bool, device=device).tril(start)
