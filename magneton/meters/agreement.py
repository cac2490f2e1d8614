"""Whether the two sensors of a board still say the same: a counter that is stale or frozen stands alone."""

from statistics import median

NEAR = 1.25  # factor by which two windows of even load may differ
FAR = 2.0  # and windows whose power swings, which the two sensors see unlike
_REMEMBERED = 9


class Agreement:
    """Power over counter, window by window. ``probed`` is what it was before the first one."""

    def __init__(self, probed: float | None) -> None:
        self._probed = probed
        self._accepted: dict[bool, list[float]] = {True: [], False: []}  # by ``even``

    def objection(self, found: float | None, *, even: bool) -> str:
        """What is wrong with a window of this agreement; "" for nothing, and where it is not known.

        Some boards disagree with themselves at rest and not at work: the probe was taken at rest, so the
        first window may be near it or near one. Later ones are held against earlier ones of their kind:
        rest is read before all work, as an uneven window.
        """
        if found is None:
            return ""
        accepted = self._accepted[even]
        usual = (median(accepted),) if accepted else (1.0, self._probed or 1.0)
        factor = NEAR if even else FAR
        if any(expected / factor <= found <= expected * factor for expected in usual):
            self._accepted[even] = [*accepted, found][-_REMEMBERED:]
            return ""
        return (
            f"instantaneous power was {found:.2f} of that by the counter in this window, and is "
            f"{usual[-1]:.2f} of it otherwise: one of the two is stale"
        )
