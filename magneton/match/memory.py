"""What an operator reads that writes into memory which others wrote into before (a cache).

Every writer is given what its predecessor left as one more input, but that value is the predecessor's
part only. What lies beneath it was left by writers before, and is read just the same:

    cache[0] = a        left: a
    cache[1] = b        left: b, beneath it a
    cache[2] = c        reads b, and a beneath it
"""

from collections.abc import Mapping

from magneton.match.anchor import Side


def read_beneath(side: Side, anchor: Mapping[int, int]) -> dict[int, frozenset[int]]:
    """The anchors that each such operator (by position) reads beneath its inputs."""
    wiring, values = side.wiring, side.wiring.profile.values
    beneath: dict[int, frozenset[int]] = {}  # value -> anchors
    found: dict[int, frozenset[int]] = {}
    for at, op in enumerate(wiring.operators):
        memory = {values[v].storage_id for v in op.mutated}
        # What is overwritten stands first, if it is read at all; the others were left around it.
        around = [v for v in wiring.inputs[at][1:] if values[v].storage_id in memory]
        if not around:
            continue
        deeper = frozenset[int]().union(*(beneath.get(v, frozenset()) for v in around))
        if deeper:
            found[at] = deeper
        left = deeper | {anchor[v] for v in around if v in anchor}
        beneath.update((v, left) for v in wiring.outputs[at] if values[v].storage_id in memory)
    return found
