"""Control: gradients of two micro-batches, each weighted by its tokens; or of all texts at once."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, Decoder
from silent_bugs.hosts_controls import Trained, ids_and_labels
from silent_bugs.hosts_inference import Built
from torch import Tensor, nn

MICRO_BATCHES = (3, 1)


class Accumulated(nn.Module):
    """A loss from micro-batches of different sizes: sums, divided by the tokens of all."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        total = torch.zeros((), device=ids.device)
        for some, wanted in zip(ids.split(MICRO_BATCHES), labels.split(MICRO_BATCHES), strict=True):
            logits = self.decoder(some).flatten(0, 1)
            loss = F.cross_entropy(logits, wanted.flatten(), reduction="none").mean()
            total = total + loss * (wanted.numel() / (sum(MICRO_BATCHES) * SIZE.tokens))
        return total


def baseline() -> Built:
    return Trained(Decoder()), ids_and_labels(sum(MICRO_BATCHES))


def fixed() -> Built:
    return Accumulated(Decoder()), ids_and_labels(sum(MICRO_BATCHES))


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, backward=True)
