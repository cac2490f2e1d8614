"""Training steps around the decoder: of micro-batches, of pipeline stages, of experts on ranks.

An entry replaces the part of a step that has its bug. Every step gives its loss and the gradient of every
parameter, which it computes itself: what is done with gradients is most of the program.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, DecoderBody, Size, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import gradients, token_losses
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

Groups = Mapping[str, ProcessGroup]
Built = tuple[nn.Module, tuple[Tensor, ...]]
Grads = tuple[Tensor, ...]
TWO_DATA_RANKS = Mesh(axes=(("dp", 2),))
TWO_TENSOR_RANKS = Mesh(axes=(("tp", 2),))


class DataParallelStep(nn.Module):
    """Every rank has some of the texts; the loss is the mean over all tokens."""

    def __init__(self, data: Team) -> None:
        super().__init__()
        self.data = data
        self.model = Decoder()

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B / ranks, T] -> the loss, and the gradient of every parameter."""
        own = token_losses(self.model.logits(ids), labels).sum()
        loss = self.over_ranks(own / (labels.numel() * self.data.size))
        grads = gradients(loss, self.model)
        return loss.detach(), *(self.reduced(grad) for grad in grads)

    def over_ranks(self, loss: Tensor) -> Tensor:
        """The sum of a loss of each rank."""
        return self.data.summed(loss)

    def reduced(self, grad: Tensor) -> Tensor:
        """What ranks make of the gradients of each."""
        return all_reduced(grad, self.data)


def texts(ranks: int, size: Size = SIZE) -> tuple[Tensor, Tensor]:
    """Ids and labels of one of so many ranks."""
    return ids_of(batch=size.batch // ranks), ids_of(batch=size.batch // ranks)


class Stage(nn.Module):
    """Some of the layers of a decoder, with what comes before the first or after the last."""

    def __init__(self, model: Decoder, layers: Sequence[int]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(model.layers[layer] for layer in layers)
        self.embed = model.embed_tokens if 0 in layers else None
        is_last = len(model.layers) - 1 in layers
        self.norm, self.head = (model.norm, model.lm_head) if is_last else (None, None)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """ids [B, T] or x [B, T, H] -> x, or logits [B, T, V]."""
        x = x if self.embed is None else self.embed(x)
        for part in self.parts:
            x = part(x, cos, sin)
        return x if self.norm is None or self.head is None else self.head(self.norm(x))


class Experts(nn.Module):
    """Experts on the ranks of one axis: tokens travel there and back, one group of tokens from each rank.

    A group's tokens are dealt out to experts in turn, weighted by a router. Ranks hold some of the experts.
    """

    def __init__(self, ranks: Team, size: Size = SIZE, experts: int = 4) -> None:
        super().__init__()
        self.ranks, self.count = ranks, experts
        self.router = nn.Linear(size.hidden, experts, bias=False)
        self.up = nn.Parameter(torch.zeros(experts // ranks.size, size.hidden, size.intermediate))
        self.down = nn.Parameter(torch.zeros(experts // ranks.size, size.intermediate, size.hidden))

    def forward(self, x: Tensor) -> Tensor:
        """x [G, T, H] -> [G, T, H]; G groups on each rank, T a multiple of the experts."""
        shares = self.router(x).softmax(-1)
        sent = x.unflatten(1, (-1, self.count)).transpose(1, 2)
        arrived = self.ranks.exchanged(sent, 1, 0)
        inner = F.silu(torch.einsum("geth,ehi->geti", arrived, self.up))
        back = self.ranks.exchanged(torch.einsum("geti,eih->geth", inner, self.down), 0, 1)
        made = back.transpose(1, 2).flatten(1, 2)
        turn = torch.eye(self.count, device=x.device).repeat(x.shape[1] // self.count, 1)
        return made * (shares * turn).sum(-1, keepdim=True)


class Mixture(nn.Module):
    """Two blocks of experts on a residual stream, between projections that all ranks hold."""

    def __init__(self, ranks: Team, size: Size = SIZE) -> None:
        super().__init__()
        self.into, self.out = (nn.Linear(size.hidden, size.hidden) for _ in range(2))
        self.blocks = nn.ModuleList(Experts(ranks, size) for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(size.hidden) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """x [G, T, H] -> [G, T, H]."""
        x = self.into(x).tanh()
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = x + block(norm(x))
        return self.out(x)


class ExpertStep(nn.Module):
    """Tokens are split over all ranks, experts over some; the rest of the ranks hold shards of them.

    What a group computes is compared with a target, in the mean over all elements of all groups.
    """

    def __init__(self, experts: Team, copies: Team) -> None:
        super().__init__()
        self.experts, self.copies = experts, copies
        self.model = Mixture(experts)

    def forward(self, x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """x, target [G / ranks, T, H] -> the loss, and the gradient of every parameter."""
        loss = (self.model(x) - target).square().mean()
        named = dict(self.model.named_parameters())
        grads = torch.autograd.grad(loss, list(named.values()))
        of_experts = [name.endswith(("up", "down")) for name in named]
        reduced = [
            self.of_experts(grad) if apart else self.of_all(grad)
            for grad, apart in zip(grads, of_experts, strict=True)
        ]
        return self.of_all(loss.detach()), *reduced

    def of_all(self, grad: Tensor) -> Tensor:
        """The mean over all ranks."""
        return all_reduced(all_reduced(grad, self.copies, "avg"), self.experts, "avg")

    def of_experts(self, grad: Tensor) -> Tensor:
        """Of an expert, which has seen the tokens of all ranks along the experts' axis already."""
        return all_reduced(grad, self.copies, "avg") / self.experts.size


def groups_of_tokens(ranks: int, size: Size = SIZE) -> tuple[Tensor, Tensor]:
    """Input and target of one of so many ranks, of four groups altogether."""
    shape = (4 // ranks, 8, size.hidden)
    return torch.zeros(shape), torch.zeros(shape)


class Trained(DecoderBody):
    """The mean loss over all tokens, of logits that every rank has whole in the end."""

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """ids, labels [B, T] -> one number."""
        return token_losses(self.team.collected(self.logits(ids), -1), labels).mean()


def trained(team: Team, attentions: Sequence[type[Attention]]) -> Built:
    """A tensor-parallel decoder with these attentions, to be differentiated."""
    return Trained(team, attentions=attentions), (ids_of(), ids_of())
