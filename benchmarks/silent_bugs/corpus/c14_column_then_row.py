"""Control: columns of one weight and rows of the next on every rank, with gradients of both."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_controls import Trained, ids_and_labels
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups


def baseline() -> Built:
    return Trained(Decoder()), ids_and_labels()


def fixed(rank: int, groups: Groups) -> Built:
    return Trained(Decoder(Team.of(groups["tp"]))), ids_and_labels()


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS, backward=True)
