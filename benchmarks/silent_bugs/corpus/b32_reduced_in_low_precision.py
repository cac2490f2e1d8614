"""B32: gradients of replicated weights are to be reduced in 32 bits; the sum over tensor ranks is in 16."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, angles, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import gradients, token_losses
from silent_bugs.hosts_training import Built, Groups
from torch import Tensor, nn

from scalify.ir.mesh import Mesh


class HalfDecoder(SequenceDecoder):
    """Everything in 16 bits, angles of positions too."""

    def hidden(self, ids: Tensor) -> Tensor:
        """ids [B, T / ranks] -> [B, T / ranks, H]."""
        x = self.embed_tokens(ids)
        positions = torch.arange(ids.shape[1], device=ids.device) + self.sequence.rank * ids.shape[1]
        cos, sin = (part.bfloat16() for part in angles(positions, self.size.head_dim))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class MixedStep(nn.Module):
    """Weights and what is computed have 16 bits; gradients are handed to the optimiser in 32."""

    def __init__(self, ranks: Team) -> None:
        super().__init__()
        self.ranks = ranks
        self.model = HalfDecoder(ranks).bfloat16()

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T / ranks] -> the loss, and the gradient of every parameter."""
        losses = token_losses(self.model.logits(ids).float(), labels)
        loss = self.ranks.summed(losses.sum() / (labels.numel() * self.ranks.size))
        grads = gradients(loss, self.model)
        return loss.detach(), *(self.reduced(grad) for grad in grads)

    def reduced(self, grad: Tensor) -> Tensor:
        """Over ranks, in 32 bits."""
        return all_reduced(grad.float(), self.ranks)


class BuggyStep(MixedStep):
    def reduced(self, grad: Tensor) -> Tensor:
        return all_reduced(grad, self.ranks).float()  # planted


def inputs(ranks: int) -> tuple[Tensor, Tensor]:
    return ids_of(tokens=SIZE.tokens // ranks), ids_of(tokens=SIZE.tokens // ranks)


def baseline() -> Built:
    return MixedStep(Team()), inputs(1)


def buggy(rank: int, groups: Groups) -> Built:
    return BuggyStep(Team.of(groups["sp"])), inputs(2)


def fixed(rank: int, groups: Groups) -> Built:
    return MixedStep(Team.of(groups["sp"])), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("sp", 2),)), expected="precision")
