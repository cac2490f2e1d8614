"""The corpus keeps what it promises: pairs that run and agree, large hosts, marks on the lines to blame."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from comparisons import a_side, matched
from energy_cases.case import FOLDER, Case
from energy_cases.catalogue import ABSENT, CASES
from energy_cases.score import score, summary
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.compare.model import Comparison, Criteria
from magneton.compare.profiles import compare
from magneton.systems.user_file import user_function

LEAST_OPERATORS = 100
TOLERANCE = 1e-4  # of outputs, times their rms, as a comparison of float32 has it
HELPERS = {"case", "catalogue", "planted", "planting", "run", "score", "spared"}

names = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


class Counted(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.operators[str(func).rpartition(".")[0]] += 1
        return func(*args, **(kwargs or {}))


def ran(case: Case, side: str) -> tuple[tuple[Tensor, ...], Counter[str]]:
    torch.manual_seed(0)
    target, args = user_function(case.file, f"{case.name}_{side}")()
    with Counted() as counted:
        outputs = target(*args)
    return outputs, counted.operators


@names
def test_both_sides_run_in_a_host_that_is_large_enough_and_do_the_same_work(case: Case) -> None:
    (wasteful, more), (lean, fewer) = ran(case, "wasteful"), ran(case, "lean")

    assert min(more.total(), fewer.total()) >= LEAST_OPERATORS
    assert len(wasteful) == len(lean)
    assert _agree(wasteful, lean) is ("not the same work" not in case.outcomes)


def _agree(outputs: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    pairs = [(one.double(), other.double()) for one, other in zip(outputs, others, strict=True)]
    return all(
        one.shape == other.shape
        and bool(((one - other).abs() <= TOLERANCE * other.square().mean().sqrt()).all())
        for one, other in pairs
    )


@pytest.mark.parametrize("case", [case for case in CASES if case.operators], ids=lambda case: case.name)
def test_the_wasteful_side_runs_an_operator_that_is_to_blame(case: Case) -> None:
    _, operators = ran(case, "wasteful")

    assert not operators.keys().isdisjoint(case.operators)


def test_names_are_of_one_case_each_and_every_pair_is_in_the_catalogue() -> None:
    known = [case.name for case in CASES]
    planted = {
        line.removeprefix("def ").partition("_wasteful(")[0]
        for file in FOLDER.glob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("def ") and "_wasteful(" in line
    }

    assert len(known) == len(set(known))
    assert planted == set(known)


@names
def test_a_case_says_what_to_blame_and_a_control_nothing(case: Case) -> None:
    if case.role == "control":
        assert not case.operators
        assert not case.culprit_lines()
    elif case.is_planted:
        assert case.kind is not None
        assert case.operators
        assert case.culprit_lines() or case.flag


def test_no_mark_is_of_a_case_that_is_not_there() -> None:
    marks = {
        line.rpartition("# <- ")[2].strip()
        for file in FOLDER.glob("*.py")
        if file.stem not in HELPERS
        for line in file.read_text(encoding="utf-8").splitlines()
        if "# <- " in line
    }

    assert marks <= {case.name for case in CASES}


def test_what_is_absent_has_a_reason() -> None:
    assert all(absent.report and absent.mechanism and absent.reason for absent in ABSENT)


CASE = replace(
    next(case for case in CASES if case.is_planted),
    theme="model",
    flag="a flag",
    operators=("aten.bmm",),
    costly="baseline",
)
MORE, LESS = (2.0, 0.5, 2.0), (1.0, 0.5, 2.0)  # what the operators of a layer cost, bmm first


def compared(baseline_j: Sequence[float], candidate_j: Sequence[float], file: str = "model.py") -> Comparison:
    baseline, candidate = a_side(baseline_j, seed=1, file=file), a_side(candidate_j, seed=2, file=file)
    return compare(baseline, candidate, matched(baseline, candidate), Criteria())


def test_a_finding_in_the_file_of_its_case_is_found_and_has_a_direction() -> None:
    comparison = compared(MORE, LESS)

    right, wrong = score(CASE, comparison), score(replace(CASE, costly="candidate"), comparison)

    assert (right.outcome, right.found, right.region, right.direction) == (True, True, True, True)
    assert right.false_findings == 0
    assert (wrong.region, wrong.direction, wrong.false_findings) == (False, False, 1)


def test_a_row_without_a_culprit_is_the_wrong_region() -> None:
    found = score(replace(CASE, operators=("aten.sort",)), compared(MORE, LESS))

    assert (found.found, found.region) == (True, False)


def test_a_finding_elsewhere_is_false() -> None:
    found = score(CASE, compared(MORE, LESS, file="host.py"))

    assert (found.found, found.false_findings) == (False, 1)


def test_a_control_wants_no_finding_at_all() -> None:
    control = replace(CASE, role="control", outcomes=("none",), operators=())

    blamed, spared = score(control, compared(MORE, LESS)), score(control, compared(LESS, LESS))

    assert (blamed.outcome, blamed.false_findings) == (False, 1)
    assert (spared.outcome, spared.false_findings, spared.found) == (True, 0, None)


def test_the_summary_counts_planted_cases_and_false_findings_of_all() -> None:
    scores = [score(CASE, compared(MORE, LESS)), score(CASE, compared(MORE, LESS, file="host.py"))]

    told = summary([CASE], scores)

    assert told["found"] == "1 of 2"
    assert told["false findings"] == 1
