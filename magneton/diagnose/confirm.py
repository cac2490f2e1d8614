"""Whether a candidate is the cause: set it on the costly side as on the lean side, and measure again."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from magneton.compare.ledger import Ledger
from magneton.compare.model import Comparison, Difference, Finding, Side, Trial
from magneton.compare.same_work import check_same_work
from magneton.diagnose.changes import change_for
from magneton.diagnose.minimal import Answer, Chosen, fewest
from magneton.diagnose.saving import judge, saving
from magneton.errors import Interrupted, MagnetonError
from magneton.interventions import Intervention
from magneton.match.matching import match
from magneton.match.model import Matching
from magneton.profile.model import Profile

Rerun = Callable[[Side, tuple[Intervention, ...]], tuple[Profile, Profile]]
"""One side as it is and under interventions, recorded in turns. May raise a MagnetonError."""

_ANSWERS: dict[str, Answer] = {"confirmed": "closes", "refuted": "stays", "untestable here": "cannot tell"}


def confirm(comparison: Comparison, profiles: tuple[Profile, Profile], rerun: Rerun) -> Comparison:
    """The comparison with the candidates of its certain findings tried, until one closes the gap.

    ``profiles`` are those it was made from. One recording answers for all findings that it is about.
    """
    laboratory = _Laboratory(profiles, rerun, comparison.same_work.tolerance)
    findings = tuple(
        finding if finding.outcome == "unresolved" or not finding.operators else laboratory.test(finding)
        for finding in comparison.findings
    )
    return replace(comparison, findings=findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Before and after. ``problem`` says why they are not there, or why nothing follows from them."""

    aligned: tuple[Ledger, Ledger, Matching] | None
    problem: str = ""


@dataclass(slots=True)
class _Laboratory:
    profiles: tuple[Profile, Profile]
    rerun: Rerun
    tolerance: float
    runs: dict[tuple[Side, tuple[Difference, ...]], _Run] = field(
        default_factory=dict[tuple[Side, tuple[Difference, ...]], _Run]
    )

    def test(self, finding: Finding) -> Finding:
        origin = self._profile(finding.costly).origin
        changes = {cause: change_for(cause, finding.costly, origin) for cause in finding.causes}
        impossible = tuple(
            Trial(causes=(cause,), verdict="untestable here", saved=None, reason=change)
            for cause, change in changes.items()
            if isinstance(change, str)
        )
        testable = {cause: change for cause, change in changes.items() if not isinstance(change, str)}

        causes = tuple(testable)
        trials: dict[Chosen, Trial] = {}

        def ask(chosen: Chosen) -> Answer:
            some = tuple(causes[place] for place in chosen)
            trials[chosen] = self._try(finding, some, tuple(testable[cause] for cause in some))
            return _ANSWERS[trials[chosen].verdict]

        chosen = fewest(len(causes), ask).chosen
        if not chosen:
            return replace(finding, trials=(*trials.values(), *impossible))
        cause = trials.pop(chosen)
        return replace(
            finding,
            trials=(*trials.values(), *impossible, cause),
            confirmed=True,
            kind="misconfiguration",  # whatever it looked like before: a setting alone makes the difference
            kind_reason="set as on the other side, it is no longer spent",
        )

    def _try(
        self, finding: Finding, causes: tuple[Difference, ...], changes: tuple[Intervention, ...]
    ) -> Trial:
        run = self._run(finding.costly, causes, changes)
        if run.aligned is None:
            return Trial(causes=causes, verdict="untestable here", saved=None, reason=run.problem)
        found = saving(*run.aligned, finding.operators)
        verdict, reason = judge(found, finding.excess)
        if verdict == "confirmed" and run.problem:
            verdict, reason = "untestable here", f"{reason}, but {run.problem}"
        return Trial(causes=causes, verdict=verdict, saved=found.saved, reason=reason)

    def _run(self, side: Side, causes: tuple[Difference, ...], changes: tuple[Intervention, ...]) -> _Run:
        if (side, causes) not in self.runs:
            self.runs[side, causes] = self._record(side, changes)
        return self.runs[side, causes]

    def _record(self, side: Side, changes: tuple[Intervention, ...]) -> _Run:
        try:
            before, after = self.rerun(side, changes)
        except Interrupted:
            raise
        except MagnetonError as error:
            return _Run(aligned=None, problem=f"it does not run so: {error}")
        if _program(before) != _program(self._profile(side)):
            return _Run(aligned=None, problem="the system runs other operators when it is run again")
        same = check_same_work(before, after, self.tolerance)
        changed = next((check.name for check in same.outputs if check.problem is not None), "")
        aligned = Ledger(before), Ledger(after), match(before, after)
        return _Run(aligned=aligned, problem=f"output {changed} changes with it" if changed else "")

    def _profile(self, side: Side) -> Profile:
        return self.profiles[0 if side == "baseline" else 1]


def _program(profile: Profile) -> tuple[str, ...]:
    return tuple(operator.name for operator in profile.operators)
