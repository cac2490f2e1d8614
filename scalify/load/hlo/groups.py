"""Who takes part in a collective: replica groups as the file writes them, and as groups of ranks.

HLO numbers replicas and partitions; a rank is ``replica * partitions + partition``. What the ids of a group
mean depends on whether the instruction has a channel and whether it uses global ids.
"""

from math import prod

import numpy as np

from scalify.errors import InvalidGraph

MAX_RANKS = 2**20


def iota_groups(
    groups: int, group_size: int, reshape: tuple[int, ...], transpose: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Groups in the compact form: 0 .. n-1, reshaped, transposed, then cut into rows."""
    total = groups * group_size
    transpose = transpose or tuple(range(len(reshape)))
    possible = (
        groups > 0
        and group_size > 0
        and total <= MAX_RANKS
        and len(reshape) <= 32
        and all(size > 0 for size in reshape)
        and prod(reshape) == total
        and sorted(transpose) == list(range(len(reshape)))
    )
    if not possible:
        raise InvalidGraph(
            f"replica groups [{groups},{group_size}]<={list(reshape)} do not fit together",
            hint="the file is damaged; write it again",
        )
    ids = np.arange(total).reshape(reshape).transpose(transpose).reshape(groups, group_size)
    return tuple(tuple(row) for row in ids.tolist())
