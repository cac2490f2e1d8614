"""Options that several commands share."""

import pytest
from typer.testing import CliRunner

from magneton.cli.app import app
from magneton.cli.asked import cache_named
from magneton.cli.options import CacheName
from magneton.errors import MagnetonError


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
