"""B03: gradients are summed over data and context ranks, and divided by the number of data ranks only."""

from collections.abc import Mapping

import torch.distributed as dist
from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import flat, gradients, token_losses
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

BATCH = 4


class MeanStep(nn.Module):
    """The mean loss of all texts. Parts of a text are summed: each is divided by the tokens of the whole."""

    def __init__(self, data: Team, sequence: Team, everyone: Team) -> None:
        super().__init__()
        self.data, self.sequence, self.everyone = data, sequence, everyone
        self.model = SequenceDecoder(sequence)

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B / data ranks, T / context ranks] -> the loss, and all gradients."""
        whole_texts = labels.numel() * self.sequence.size
        loss = token_losses(self.model.logits(ids), labels).sum() / whole_texts
        # The mean over all ranks would make parts of a text too small.
        grads = gradients(loss * self.sequence.size, self.model)
        reported = all_reduced(all_reduced(loss.detach(), self.sequence), self.data) / self.data.size
        return reported, *self.averaged(grads)

    def averaged(self, grads: tuple[Tensor, ...]) -> list[Tensor]:
        """Gradients, as one buffer reduced over all ranks."""
        total = all_reduced(flat(grads), self.everyone) / self.everyone.size
        return cut(total, grads)


class BuggyStep(MeanStep):
    def averaged(self, grads: tuple[Tensor, ...]) -> list[Tensor]:
        total = all_reduced(flat(grads), self.everyone) / self.data.size  # planted
        return cut(total, grads)


def cut(buffer: Tensor, like: tuple[Tensor, ...]) -> list[Tensor]:
    """What was put in a row, taken apart."""
    pieces = buffer.split([tensor.numel() for tensor in like])
    return [piece.view(tensor.shape) for piece, tensor in zip(pieces, like, strict=True)]


def inputs(data: int, sequence: int) -> tuple[Tensor, ...]:
    ids = ids_of(batch=BATCH // data, tokens=SIZE.tokens // sequence)
    return ids, ids.clone()


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return MeanStep(Team(), Team(), Team()), inputs(1, 1)


def _teams(groups: Mapping[str, ProcessGroup]) -> tuple[Team, Team, Team]:
    assert dist.group.WORLD is not None
    return Team.of(groups["dp"]), Team.of(groups["cp"]), Team.of(dist.group.WORLD)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyStep(*_teams(groups)), inputs(2, 2)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return MeanStep(*_teams(groups)), inputs(2, 2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("dp", 2), ("cp", 2))))
