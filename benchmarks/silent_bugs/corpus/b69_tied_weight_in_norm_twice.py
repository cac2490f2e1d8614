"""B69: the first and the last pipeline stage hold the tied weight; both count its gradient in the norm."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts_inference import ALONE, Groups
from torch import Tensor, nn

from scalify.ir.mesh import Mesh

WIDTH, LAYERS, VOCABULARY = 8, 4, 20
TIED = "embedding"


class Step(nn.Module):
    """Gradients clipped by their norm, and Adam. Weights of layers are stacked, some on every stage."""

    def __init__(self, team: Team = ALONE) -> None:
        super().__init__()
        self.team = team
        own = LAYERS // team.size
        self.weights = nn.ParameterDict(
            {
                TIED: nn.Parameter(torch.zeros(VOCABULARY, WIDTH)),
                "qkv": nn.Parameter(torch.zeros(own, 3 * WIDTH, WIDTH)),
                "out": nn.Parameter(torch.zeros(own, WIDTH, WIDTH)),
                "up": nn.Parameter(torch.zeros(own, 2 * WIDTH, WIDTH)),
                "down": nn.Parameter(torch.zeros(own, WIDTH, 2 * WIDTH)),
                "norm": nn.Parameter(torch.zeros(own, WIDTH)),
            }
        )
        for name, weight in self.weights.items():
            self.register_buffer(f"mean_{name}", torch.zeros_like(weight))
            self.register_buffer(f"square_{name}", torch.zeros_like(weight))

    def forward(self, gradients: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """The norm, and the weights after the step."""
        norm = self.norm(gradients)
        scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        return norm, *(self.updated(name, gradient * scale) for name, gradient in gradients.items())

    def norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """Over all stages; what two of them hold is counted once, beside the sum over stages."""
        own = [gradient.square().sum() for name, gradient in gradients.items() if name != TIED]
        of_stages = all_reduced(torch.stack(own).sum(), self.team)
        return (of_stages + gradients[TIED].square().sum()).sqrt()

    def updated(self, name: str, gradient: Tensor) -> Tensor:
        mean = torch.lerp(self.get_buffer(f"mean_{name}"), gradient, 0.1)
        square = self.get_buffer(f"square_{name}") * 0.95 + gradient * gradient * 0.05
        weight = self.weights[name]
        return weight * (1 - 1e-3) - 1e-2 * mean / (square.sqrt() + 1e-8)


class StepOfAll(Step):
    def norm(self, gradients: dict[str, Tensor]) -> Tensor:
        squares = [gradient.square().sum() for gradient in gradients.values()]  # planted
        return all_reduced(torch.stack(squares).sum(), self.team).sqrt()  # planted


def step(module: Step) -> object:
    return module, ({name: torch.zeros_like(weight) for name, weight in module.weights.items()},)


def baseline() -> object:
    return step(Step())


def buggy(rank: int, groups: Groups) -> object:
    return step(StepOfAll(Team.of(groups["pp"])))


def fixed(rank: int, groups: Groups) -> object:
    return step(Step(Team.of(groups["pp"])))


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("pp", 2),)))
