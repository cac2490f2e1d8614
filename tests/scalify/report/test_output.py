"""Exit statuses, and where results go."""

from collections.abc import Callable

import pytest
from scalify_results import killed, proved, refuted, stuck

from scalify.report.output import exit_status
from scalify.report.result import Result


@pytest.mark.parametrize(("result", "status"), [(proved, 0), (refuted, 3), (stuck, 4), (killed, 4)])
def test_the_exit_status_says_the_verdict(result: Callable[[], Result], status: int):
    assert exit_status(result()) == status
