"""Two configurations of one system, and a laboratory that runs either under interventions, without a worker.

A layer costs as ``costs_j`` says, unless every setting of ``behind`` is as on the lean side: then its second
operator costs a tenth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from comparisons import a_side

from magneton.compare.model import Comparison, Criteria, Side
from magneton.compare.profiles import compare_profiles
from magneton.errors import MagnetonError
from magneton.interventions import Intervention, SetFlag
from magneton.profile.model import Profile
from magneton.profile.sketches import stack_sketches
from magneton.record.sketching import sketch_array

COSTS_J = (1.0, 2.0, 2.0)
LEAN = "lean"


def recognisable(profile: Profile) -> Profile:
    """The same with values that hold numbers: of equal chains, value k is the same on either side."""
    arrays = [np.random.default_rng(k).standard_normal((16, 16)) for k in range(len(profile.values))]
    return replace(
        profile,
        values=tuple(replace(value, shape=(16, 16)) for value in profile.values),
        sketches=stack_sketches([sketch_array(array) for array in arrays]),
    )


@dataclass(slots=True)
class Laboratory:
    """``settings`` are flags of the costly side by name, all other than on the lean side."""

    settings: tuple[str, ...]
    behind: frozenset[str]
    noise: float = 0.001
    broken: frozenset[str] = frozenset()  # nothing runs with these changed
    session: str = "one"
    changes_outputs: bool = False
    restless: bool = False  # runs other operators each time
    asked: list[tuple[Side, tuple[str, ...]]] = field(default_factory=list[tuple[Side, tuple[str, ...]]])

    def run(self, changed: Sequence[str], seed: int = 0) -> Profile:
        lean = bool(self.behind) and self.behind <= set(changed)
        costs_j = (COSTS_J[0], COSTS_J[1] / 10, COSTS_J[2]) if lean else COSTS_J
        flags = {name: LEAN if name in changed else "costly" for name in self.settings}
        return recognisable(a_side(costs_j, noise=self.noise, seed=seed, flags=flags, session=self.session))

    def pair(self) -> tuple[Profile, Profile]:
        """As recorded for the comparison: the baseline is the costly side."""
        costly = self.run((), seed=1)
        lean = self.run(self.settings, seed=2)
        return costly, replace(lean, origin=replace(lean.origin, session="one"))

    def comparison(self) -> Comparison:
        return compare_profiles(*self.pair(), Criteria())

    def rerun(self, side: Side, changes: tuple[Intervention, ...]) -> tuple[Profile, Profile]:
        names = tuple(sorted(change.name for change in changes if isinstance(change, SetFlag)))
        self.asked.append((side, names))
        if self.broken & set(names):
            raise MagnetonError("the model does not load", hint="")
        before, after = self.run((), seed=3), self.run(names, seed=4)
        if self.restless:
            extra = replace(before.operators[0], name="aten.other.default")
            before = replace(before, operators=(extra, *before.operators[1:]))
        if self.changes_outputs:
            outputs: Mapping[str, np.ndarray] = {name: array + 1 for name, array in after.outputs.items()}
            after = replace(after, outputs=outputs)
        return before, after
