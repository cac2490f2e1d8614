"""Control: the softmax of all scores, the largest and their share; or the largest, and a softmax of these."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import Built, Engine, Experts, Groups, inputs
from torch import Tensor

from scalify.ir.mesh import Mesh


class ChosenFirst(Experts):
    """A softmax of nothing but the largest scores."""

    def routing(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        scores, chosen = logits.topk(self.config.experts_per_token, -1)
        return scores.softmax(-1), chosen


def baseline() -> Built:
    return Engine(mlps=(Experts, Experts)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["ep"]), mlps=(ChosenFirst, ChosenFirst)), inputs()


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=Mesh(axes=(("ep", 2),)))
