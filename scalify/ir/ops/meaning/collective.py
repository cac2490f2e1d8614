"""Meanings of the collectives: from the value on every rank to the result on every rank."""

from collections.abc import Callable, Sequence

import numpy as np

from scalify.ir.ops.meaning.reduction import REDUCERS
from scalify.ir.ops.spec import Array, Call


def _per_group(
    call: Call, values: Sequence[Array], exchange: Callable[[list[Array]], Sequence[Array]]
) -> list[Array]:
    """Run one exchange within every group. Members come, and results go, in the group's own order."""
    results = list(values)
    for group in call.groups():
        for rank, result in zip(group, exchange([values[member] for member in group]), strict=True):
            results[rank] = result
    return results


def _combined(call: Call, members: list[Array]) -> Array:
    return np.asarray(REDUCERS[call.text("kind")](np.stack(members), axis=0))


def all_reduce(call: Call, values: Sequence[Array]) -> list[Array]:
    """Everybody has the combination of all."""
    return _per_group(call, values, lambda members: [_combined(call, members)] * len(members))


def all_gather(call: Call, values: Sequence[Array]) -> list[Array]:
    """Everybody has all pieces, in the group's order."""
    dim = call.integer("dim")
    return _per_group(call, values, lambda members: [np.concatenate(members, axis=dim)] * len(members))


def reduce_scatter(call: Call, values: Sequence[Array]) -> list[Array]:
    """Member j has piece j of the combination."""
    dim = call.integer("dim")
    return _per_group(
        call, values, lambda members: np.split(_combined(call, members), len(members), axis=dim)
    )


def all_to_all(call: Call, values: Sequence[Array]) -> list[Array]:
    """Member j has everybody's piece j."""
    split, concat = call.integer("split_dim"), call.integer("concat_dim")

    def exchange(members: list[Array]) -> list[Array]:
        pieces = [np.split(member, len(members), axis=split) for member in members]
        return [
            np.concatenate([mine[number] for mine in pieces], axis=concat) for number in range(len(members))
        ]

    return _per_group(call, values, exchange)


def permute(call: Call, values: Sequence[Array]) -> list[Array]:
    """Each target has its source's value."""
    results = [np.zeros_like(value) for value in values]
    for source, target in call.pairs("pairs"):
        results[target] = values[source]
    return results


def broadcast_from(call: Call, values: Sequence[Array]) -> list[Array]:
    """Everybody has the value of the group's member ``root``."""
    root = call.integer("root")
    return _per_group(call, values, lambda members: [members[root]] * len(members))
