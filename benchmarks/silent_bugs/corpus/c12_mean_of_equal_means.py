"""Control: ranks have equally many texts, and the mean of their mean losses is the mean loss of all."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, Decoder
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts_controls import Trained, ids_and_labels
from silent_bugs.hosts_inference import Built, Groups
from torch import Tensor

from scalify.ir.mesh import Mesh


class MeanOfMeans(Trained):
    """Averages over ranks."""

    def __init__(self, decoder: Decoder, data: Team) -> None:
        super().__init__(decoder)
        self.data = data

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        return all_reduced(super().forward(ids, labels), self.data, "avg")


def baseline() -> Built:
    return Trained(Decoder()), ids_and_labels()


def fixed(rank: int, groups: Groups) -> Built:
    team = Team.of(groups["dp"])
    return MeanOfMeans(Decoder(), team), ids_and_labels(SIZE.batch // team.size)


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=Mesh(axes=(("dp", 2),)))
