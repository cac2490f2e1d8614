"""Why an intervention cannot be carried out in this process."""

from magneton.errors import MagnetonError


class Refusal(MagnetonError):
    """``subject`` is the intervention in words, ``why`` a clause."""

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(
            f"cannot be tested here: {subject}: {why}",
            hint="what this would have shown stays open; nothing was measured under it",
        )
