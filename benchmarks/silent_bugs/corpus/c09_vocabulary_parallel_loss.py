"""Control: the loss from logits of which every rank has a part of the vocabulary: its largest and its sum."""

import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder, vocabulary_loss
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_controls import ids_and_labels
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups
from torch import Tensor, nn


class Losses(nn.Module):
    """Of every token."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """ids, labels [B, T] -> [B, T]."""
        found = F.log_softmax(self.decoder(ids), -1).gather(-1, labels.unsqueeze(-1))
        return -found.squeeze(-1)


class ParallelLosses(Losses):
    """Of logits that lie on ranks."""

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        return vocabulary_loss(self.decoder(ids), labels, self.decoder.team)


def baseline() -> Built:
    return Losses(Decoder()), ids_and_labels()


def fixed(rank: int, groups: Groups) -> Built:
    return ParallelLosses(Decoder(Team.of(groups["tp"]))), ids_and_labels()


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
