"""Control: four ranks and two key heads, each of which two neighbouring ranks hold."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Attention, Column, Decoder, Size, ids_of
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import Built, Groups

from scalify.ir.mesh import Mesh


class RepeatedKeys(Attention):
    """One key head on every rank, fewer than ranks there are in all."""

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        width = self.kv_heads * size.head_dim * team.size
        self.k_proj, self.v_proj = (Column(size.hidden, width, team) for _ in range(2))


def baseline() -> Built:
    return Decoder(), (ids_of(),)


def fixed(rank: int, groups: Groups) -> Built:
    return Decoder(Team.of(groups["tp"]), attentions=(RepeatedKeys, RepeatedKeys)), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=Mesh(axes=(("tp", 4),)))
