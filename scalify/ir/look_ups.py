"""Which operands of a node say where it reads or writes, and among how many rows."""

from typing import cast

from scalify.ir.graph import Node


def indices(node: Node) -> tuple[tuple[int, int], ...]:
    """Pairs: the place of an operand that holds indices, and the dimension of the first operand it addresses.

    A loss's targets are indices too. ``one_hot`` is none of these: what is out of range is zeros there.
    """
    match node.op:
        case "take" | "take_along" | "scatter":
            return ((1, cast(int, node.attrs["axis"])),)
        case "index_put":
            return tuple((dim + 2, dim) for dim in range(len(node.operands) - 2))
        case "cross_entropy":
            return ((1, 1),)
        case _:
            return ()
