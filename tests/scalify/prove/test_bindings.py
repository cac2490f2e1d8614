"""The engine is loaded without the package around it, and works all the same."""

import subprocess
import sys

import pytest


def ran(code: str) -> str:
    """In a process of its own: what is imported here already would hide what the code imports."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout


ENGINE = "from scalify.prove.bindings import new_engine; engine = new_engine()\n"
PROGRAM = "engine.run_program(*engine.parse_program('(datatype N (Z)) (let x (Z)) (check (= x (Z)))'))\n"


def test_an_engine_runs_a_program_without_the_high_level_interface():
    assert ran(ENGINE + PROGRAM + "import sys; print('egglog' in sys.modules)") == "False\n"


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_package_has_the_same_module_when_it_is_imported_too(order: str):
    own = "from egglog.bindings import EGraph\n"
    code = own + ENGINE if order == "before" else ENGINE + own
    assert ran(code + PROGRAM + "print(type(engine) is EGraph)") == "True\n"


def test_every_engine_is_a_new_one():
    check = "new_engine().run_program(*new_engine().parse_program('(datatype N (Z))'))\n"
    assert ran(ENGINE + "engine.run_program(*engine.parse_program('(datatype N (Z))'))\n" + check) == ""
