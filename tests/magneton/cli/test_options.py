"""Options that several commands share."""

import pytest
from comparisons import matched
from on_boards import on_a_board
from typer.testing import CliRunner

from magneton.cli.app import app
from magneton.cli.asked import cache_named, exit_status
from magneton.cli.options import CacheName
from magneton.compare.model import Criteria
from magneton.compare.profiles import compare
from magneton.errors import EXIT_FINDING, EXIT_OK, MagnetonError


@pytest.mark.parametrize("command", [["record", "torch", "-o", "x.mgn"], ["compare", "torch", "torch"]])
def test_a_state_of_the_caches_that_there_is_not_is_refused(command: list[str]):
    result = CliRunner().invoke(app, [*command, "--cache", "tepid"])
    assert result.exit_code == MagnetonError.exit_code
    assert "tepid" in result.output and "warm" in result.output


def test_the_choice_of_caches_is_handed_on_by_name():
    assert [cache_named(choice) for choice in (None, CacheName.WARM, CacheName.COLD)] == [
        None,
        "warm",
        "cold",
    ]


def test_what_a_host_wastes_fails_a_comparison_that_is_to_fail_on_it():
    lean, spinning = on_a_board(host_w=2.0), on_a_board(host_w=9.0, seed=1)
    found = compare(lean, spinning, matched(lean, spinning), Criteria())

    assert found.findings == ()
    assert [exit_status(found, (asked,)) for asked in ("any", "waste")] == [EXIT_FINDING] * 2
    assert [exit_status(found, asked) for asked in ((), ("trade-off",), ("redundant",))] == [EXIT_OK] * 3
