"""A tensor for tests without a board."""

import torch


class OnBoard(torch.Tensor):
    """Says that it lies on a board."""

    @property
    def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride] - to lie about it
        return torch.device("cuda", 0)
