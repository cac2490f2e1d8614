"""B63: the backward pass of a norm is run before the exchange is waited for, and then replaced by it."""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceAttention, SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, Size, ids_of
from silent_bugs.hosts.ranks import Team, all_to_all
from silent_bugs.hosts.training import gradients, token_losses
from silent_bugs.hosts_training import Built, Groups
from torch import Tensor, nn
from torch.autograd import Function

from scalify.ir.mesh import Mesh

EPSILON = 1e-6


def through_norm(grad: Tensor, x: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the operand of a root-mean-square norm, and of its gain."""
    inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)
    scaled = grad * gain
    along = (scaled * x).mean(-1, keepdim=True)
    of_gain = (grad * x * inverse).flatten(0, -2).sum(0)
    return scaled * inverse - x * inverse**3 * along, of_gain


class NormedAndSent(Function):
    """Heads of the own tokens, normed, and sent to the ranks that attend with them; x [B, H, T, D]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, team: Team) -> Tensor:
        ctx.team = team
        ctx.save_for_backward(x, gain)
        normed = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain
        return all_to_all(normed, 1, 2, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, gain = ctx.saved_tensors
        arrived = all_to_all(grad, 2, 1, ctx.team)
        of_x, of_gain = through_norm(arrived, x, gain)
        return of_x, of_gain, None


class NormedTooEarly(NormedAndSent):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, gain = ctx.saved_tensors
        of_x, of_gain = through_norm(grad.reshape(x.shape), x, gain)  # planted
        of_x = all_to_all(grad, 2, 1, ctx.team)  # planted
        return of_x, of_gain, None


class ExchangingAttention(SequenceAttention):
    """Every rank attends with some of the heads over all tokens, and sends back what its own tokens get."""

    sent: type[NormedAndSent] = NormedAndSent

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.gain = nn.Parameter(torch.ones(size.head_dim))

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k = self.sent.apply(k, self.gain, self.sequence)
        q, v = (self.sequence.exchanged(x, 1, 2) for x in (q, v))
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        scores = q @ k.transpose(-2, -1) * self.size.head_dim**-0.5
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        return self.sequence.exchanged(scores.masked_fill(~past, -torch.inf).softmax(-1) @ v, 2, 1)


class BuggyAttention(ExchangingAttention):
    sent = NormedTooEarly


class SequenceStep(nn.Module):
    """The mean loss over all tokens, of which every rank has some, and its gradients."""

    def __init__(self, sequence: Team, last: type[SequenceAttention]) -> None:
        super().__init__()
        self.sequence = sequence
        self.model = SequenceDecoder(sequence, attentions=(ExchangingAttention, last))

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T / ranks] -> the loss, and the gradient of every parameter."""
        total = token_losses(self.model.logits(ids), labels).sum()
        loss = self.sequence.summed(total / (labels.numel() * self.sequence.size))
        grads = gradients(loss, self.model)
        return loss.detach(), *(self.sequence.summed(grad) for grad in grads)


def inputs(ranks: int) -> tuple[Tensor, Tensor]:
    return ids_of(tokens=SIZE.tokens // ranks), ids_of(tokens=SIZE.tokens // ranks)


def baseline() -> Built:
    return SequenceStep(Team(), ExchangingAttention), inputs(1)


def buggy(rank: int, groups: Groups) -> Built:
    return SequenceStep(Team.of(groups["sp"]), BuggyAttention), inputs(2)


def fixed(rank: int, groups: Groups) -> Built:
    return SequenceStep(Team.of(groups["sp"]), ExchangingAttention), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("sp", 2),)))
