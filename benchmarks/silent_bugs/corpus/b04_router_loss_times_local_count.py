"""B04: a router's loss is scaled by the rank's tokens, and its gradient divided by those of all ranks."""

from collections.abc import Mapping

from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, ids_of
from silent_bugs.hosts.experts import Choice
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import Attached, gradients, token_losses
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class BuggyChoice(Choice):
    def attached(self, shares: Tensor, loss: Tensor) -> Tensor:
        count = shares.shape[0] * shares.shape[1]
        return Attached.apply(shares, loss, 0.01 * count)  # planted


class PerTokenStep(nn.Module):
    """The loss by token, and gradients: both are summed over ranks and divided by all tokens."""

    def __init__(self, tokens: Team, last: type[Choice] = Choice) -> None:
        super().__init__()
        self.tokens = tokens
        self.model = SequenceDecoder(tokens, mlps=(Choice, last))
        for module in self.model.modules():
            if isinstance(module, Choice):
                module.tokens = tokens

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T / ranks] -> the loss, and the gradient of every parameter."""
        total = token_losses(self.model.logits(ids), labels).sum()
        count = labels.numel() * self.tokens.size
        grads = gradients(total, self.model)
        summed = (all_reduced(grad, self.tokens) for grad in grads)
        return all_reduced(total.detach(), self.tokens) / count, *(grad / count for grad in summed)


def inputs(ranks: int) -> tuple[Tensor, ...]:
    return ids_of(tokens=SIZE.tokens // ranks), ids_of(tokens=SIZE.tokens // ranks)


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return PerTokenStep(Team()), inputs(1)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return PerTokenStep(Team.of(groups["tp"]), BuggyChoice), inputs(2)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return PerTokenStep(Team.of(groups["tp"])), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("tp", 2),)))
