"""B33: a sum that was divided by the user's own factor is averaged over the replicas, and not summed."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, Decoder, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced, reduce_scattered
from silent_bugs.hosts.training import gradients, token_losses
from silent_bugs.hosts_training import Built, Groups
from torch import Tensor, nn

from scalify.ir.mesh import Mesh

FACTOR = 3.0


class ShardedStep(nn.Module):
    """Texts are split over replicas and shards; gradients end up in shards, divided by a factor."""

    def __init__(self, replicas: Team, shards: Team) -> None:
        super().__init__()
        self.replicas, self.shards = replicas, shards
        self.model = Decoder()

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B / ranks, T] -> the loss, and the gradient of every parameter, in shards."""
        loss = token_losses(self.model.logits(ids), labels).sum()
        grads = gradients(loss, self.model)
        total = all_reduced(all_reduced(loss.detach(), self.shards), self.replicas)
        return total, *(self.reduced(grad) for grad in grads)

    def reduced(self, grad: Tensor) -> Tensor:
        """Over shards first, then over replicas."""
        divided = reduce_scattered(grad, 0, self.shards) / FACTOR
        return all_reduced(divided, self.replicas)


class BuggyStep(ShardedStep):
    def reduced(self, grad: Tensor) -> Tensor:
        divided = reduce_scattered(grad, 0, self.shards) / FACTOR
        return all_reduced(divided, self.replicas, "avg")  # planted


def inputs(ranks: int) -> tuple[Tensor, Tensor]:
    texts = 2 * SIZE.batch // ranks
    return ids_of(batch=texts), ids_of(batch=texts)


def baseline() -> Built:
    return ShardedStep(Team(), Team()), inputs(1)


def buggy(rank: int, groups: Groups) -> Built:
    return BuggyStep(Team.of(groups["replica"]), Team.of(groups["shard"])), inputs(4)


def fixed(rank: int, groups: Groups) -> Built:
    return ShardedStep(Team.of(groups["replica"]), Team.of(groups["shard"])), inputs(4)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("replica", 2), ("shard", 2))))
