"""B46: the scaling of routed experts has moved into the choice of experts, and still follows their sum."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import Built, Engine, Experts, Groups, Mlp, inputs, summed
from torch import Tensor

from scalify.ir.mesh import Mesh


class ScaledRouting(Experts):
    """The factor is part of the weights."""

    def routing(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        weights, chosen = super().routing(logits)
        return weights * self.config.routed_scaling, chosen

    def forward(self, x: Tensor) -> Tensor:
        return summed(self.routed(x), self.team)


class ScaledTwice(ScaledRouting):
    def forward(self, x: Tensor) -> Tensor:
        return summed(self.routed(x), self.team) * self.config.routed_scaling  # planted


def baseline() -> Built:
    return Engine(mlps=(Mlp, Experts)), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["ep"]), mlps=(Mlp, ScaledTwice)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["ep"]), mlps=(Mlp, ScaledRouting)), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("ep", 2),)))
