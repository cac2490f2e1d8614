"""Loops whose condition follows from constants, unrolled."""

from collections.abc import Callable, Sequence

from scalify.load.stablehlo.listing import Listing

MAX_ITERATIONS = 4096
Body = Callable[[Sequence[int]], Sequence[int]]


class EndlessLoop(Exception):
    """How often a loop runs is not known, or is too often. The front end says where."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def unrolled(listing: Listing, carry: Sequence[int], condition: Body, body: Body) -> list[int]:
    """List the body as often as the condition holds; what is carried in the end."""
    for _ in range(MAX_ITERATIONS + 1):
        mark = listing.mark()
        (goes_on,) = condition(carry)
        known = listing.known(goes_on)
        listing.forget(mark)
        if known is None:
            raise EndlessLoop(
                "how often it runs depends on values", hint="use lax.scan, or fori_loop with constant bounds"
            )
        if not known:
            return list(carry)
        carry = body(carry)
    raise EndlessLoop(
        f"it runs more than {MAX_ITERATIONS} times", hint="loops of fewer iterations are unrolled"
    )
