"""What a host wastes counts where findings are to fail, though its board spends like the other one."""

import pytest
from on_boards import on_a_board
from typer.testing import CliRunner

from magneton.cli.app import app
from magneton.profile.store import save


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("hosts")
    for name, host_w in (("sleeps", 2.0), ("spins", 9.0)):
        save(on_a_board(host_w=host_w), folder / f"{name}.mgn")
    return str(folder / "sleeps.mgn"), str(folder / "spins.mgn")


@pytest.mark.parametrize(("fail_on", "code"), [("any", 3), ("waste", 3), ("trade-off", 0), ("redundant", 0)])
def test_a_host_that_spins_fails_as_waste(sides: tuple[str, str], fail_on: str, code: int) -> None:
    result = CliRunner().invoke(app, ["compare", *sides, "--fail-on", fail_on])

    assert "the candidate's host spends 4.50 times as much" in result.output
    assert result.exit_code == code


def test_hosts_that_spend_alike_fail_nothing(sides: tuple[str, str]) -> None:
    assert CliRunner().invoke(app, ["compare", sides[0], sides[0], "--fail-on", "any"]).exit_code == 0
