"""Control: a bias of which every rank adds its share before the sum over ranks."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder, ids_of
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_controls import BiasInShares, parts_by
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups


def baseline() -> Built:
    return Decoder(), (ids_of(),)


def fixed(rank: int, groups: Groups) -> Built:
    attention, mlp = parts_by(BiasInShares)
    return Decoder(Team.of(groups["tp"]), attentions=(attention, attention), mlps=(mlp, mlp)), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
