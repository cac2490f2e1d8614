"""Control: ranks exchange tokens for heads, attend to the whole text with some heads, and exchange back."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceAttention, SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, ids_of
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import Built, Groups
from torch import Tensor

from scalify.ir.mesh import Mesh


class ExchangingAttention(SequenceAttention):
    """Between two all-to-alls, heads are what ranks have some of."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        q, k, v = (self.sequence.exchanged(x, 1, 2) for x in (q, k, v))
        own = self.heads
        self.heads = self.kv_heads = q.shape[1]
        y = Attention.mixed(self, q, k, v)
        self.heads, self.kv_heads = own, SIZE.kv_heads
        return self.sequence.exchanged(y, 2, 1)


def baseline() -> Built:
    return Decoder(), (ids_of(),)


def fixed(rank: int, groups: Groups) -> Built:
    team = Team.of(groups["sp"])
    module = SequenceDecoder(team, attentions=(ExchangingAttention, ExchangingAttention))
    return module, (ids_of(tokens=SIZE.tokens // team.size),)


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=Mesh(axes=(("sp", 2),)))
