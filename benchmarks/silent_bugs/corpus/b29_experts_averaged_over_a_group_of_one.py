"""B29: gradients of experts are averaged over the ranks left for sharding, as if no others sent tokens."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts_training import Built, ExpertStep, Groups, groups_of_tokens
from torch import Tensor

from scalify.ir.mesh import Mesh


class BuggyStep(ExpertStep):
    def of_experts(self, grad: Tensor) -> Tensor:
        return all_reduced(grad, self.copies, "avg")  # planted


def baseline() -> Built:
    return ExpertStep(Team(), Team()), groups_of_tokens(1)


def buggy(rank: int, groups: Groups) -> Built:
    return BuggyStep(Team.of(groups["ep"]), Team.of(groups["fsdp"])), groups_of_tokens(2)


def fixed(rank: int, groups: Groups) -> Built:
    return ExpertStep(Team.of(groups["ep"]), Team.of(groups["fsdp"])), groups_of_tokens(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("fsdp", 1), ("ep", 2))))
