"""Values that only hold what is known already: a cache after one more write, tokens joined to those before.

    cache[3] = k           memory that was there, written with an anchored value
    keys = cat(keys, k)    what was there, and an anchored value beside it

No region computes such a value, it is carried along. Where several regions read it (a cache, layer by layer
or step by step) it belongs to the first of them and ties none to another.
"""

from collections.abc import Mapping

from magneton.match.wiring import Wiring


def held(wiring: Wiring, anchor: Mapping[int, int]) -> frozenset[int]:
    """Values without an anchor that consist of anchored values, settings and what was there before."""
    values = wiring.profile.values
    there = {values[v].storage_id for read in wiring.inputs for v in read if v not in wiring.producer}
    found: set[int] = set()
    for at, read in enumerate(wiring.inputs):
        carried = any(v not in wiring.producer or v in found for v in read)
        known = all(
            v in found
            or v in anchor
            or v in wiring.static
            or v not in wiring.producer
            or 0 in values[v].shape
            for v in read
        )
        if carried and known and _carries(wiring, at, there):
            found.update(wiring.outputs[at])
    return frozenset(found.difference(anchor))


def _carries(wiring: Wiring, at: int, there: set[int]) -> bool:
    """Whether an operator puts together what it is given and computes nothing."""
    operator, values, count = wiring.operators[at], wiring.profile.values, wiring.profile.sketches.count
    read, written = wiring.inputs[at], wiring.outputs[at]
    joins = len(read) > 1 and len(written) == 1 and sum(int(count[v]) for v in read) == count[written[0]]
    return operator.effect == "view" or joins or any(values[v].storage_id in there for v in operator.mutated)
