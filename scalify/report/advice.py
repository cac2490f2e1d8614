"""Why a verdict is Unknown, in a sentence, and what the user can do about it."""

from scalify.report.result import Result
from scalify.verdict import Reason

_WHY = {
    Reason.UNRELATED: "it is not known how the baseline's inputs or outputs lie on the candidate's ranks",
    Reason.UNPROVED: "no rule shows that the outputs are equal; they may differ, or a rule may be missing",
    Reason.UNKNOWN_OPS: "some operations have no meaning here, so nothing is known of their results",
    Reason.BUDGET: "the budget of time or facts was spent before the proof was found",
    Reason.KILLED: "the prover was stopped",
    Reason.UNCHECKED: "a proof was found, but its certificate could not be replayed; it is not trusted",
    Reason.AGREED: "the programs agree on the values of the witness, which proves nothing of others",
    Reason.WITHOUT_VALUE: "the baseline has no finite value on the values of the witness",
}
_DO = {
    Reason.UNRELATED: "state the relations of these inputs in a file: --relations FILE.toml",
    Reason.UNPROVED: "look at the place above: if both programs are right, the proof needs a rule",
    Reason.UNKNOWN_OPS: "say what they compute: --define OP=GRAPH, or --ops FILE.py with reference functions",
    Reason.BUDGET: "give it more time: --time-limit SECONDS",
    Reason.KILLED: "give it more: --time-limit SECONDS, --memory-limit SIZE",
    Reason.UNCHECKED: "please report this: the fault is in scalify",
    Reason.AGREED: "prove that they agree on all others: scalify verify BASELINE CANDIDATE",
    Reason.WITHOUT_VALUE: "verify the programs again: the witness is of others",
}


def why(result: Result) -> str:
    """The reason, in a sentence without an end; empty for a proof."""
    if result.reason is None:
        return ""
    return _WHY[result.reason] + (f": {result.detail}" if result.detail else "")


def what_to_do(result: Result) -> str:
    """The next step; empty for a proof."""
    if result.reason is None:
        return ""
    if result.reason is Reason.UNPROVED and result.suspect is None:
        return "nothing can be said of where; a smaller pair of programs may show it"
    if result.reason is Reason.UNPROVED and result.suspect is not None and result.suspect.guess:
        return "check the likely mistake; if both programs are right, the proof needs a rule"
    return _DO[result.reason]
