import ast
from dataclasses import replace
from pathlib import Path

import pytest
from planted import Planted

from magneton.diagnose.source import MOST_BYTES, Sources, Unavailable

TEXT = """
    import functools

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)  # wrapped
        return wrapper

    class Model:
        @decorate
        async def forward(self):
            return [each + 1 for each in self.layers]  # listed

        act = lambda self, x: x + 2  # short

    if functools:
        def twice():
            return "first"
    else:
        def twice():
            return "second"

    print("outside")
"""


@pytest.mark.parametrize(
    ("function", "part", "kind"),
    [
        ("decorate.<locals>.wrapper", "# wrapped", ast.FunctionDef),
        ("Model.forward", "# listed", ast.AsyncFunctionDef),
        ("Model.forward.<locals>.<listcomp>", "# listed", ast.AsyncFunctionDef),
        ("Model.<lambda>", "# short", ast.Lambda),
        ("<module>", "outside", ast.Module),
    ],
)
def test_a_function_is_found_by_its_qualified_name(
    tmp_path: Path, function: str, part: str, kind: type[ast.AST]
) -> None:
    assert isinstance(Planted(tmp_path, TEXT).locate(function, part).node, kind)


def test_of_two_functions_of_one_name_the_line_tells(tmp_path: Path) -> None:
    planted = Planted(tmp_path, TEXT)
    located = planted.locate("twice", '"second"')
    assert isinstance(located.node, ast.FunctionDef)
    assert located.node.lineno == planted.line('"second"') - 1


def test_what_encloses_a_function_is_told(tmp_path: Path) -> None:
    located = Planted(tmp_path, TEXT).locate("Model.forward", "# listed")
    assert [type(each) for each in located.enclosing] == [ast.Module, ast.ClassDef]
    assert located.module is located.enclosing[0]


def reason(planted: Planted, **changes: object) -> str:
    known = planted.frame("Model.forward", "# listed")
    answer = planted.sources.locate(replace(known, **changes))  # pyright: ignore[reportArgumentType]  # any field
    assert isinstance(answer, Unavailable)
    return answer.reason


def test_there_is_a_reason_for_no_function(tmp_path: Path) -> None:
    planted = Planted(tmp_path, TEXT)
    assert reason(planted, file="<string>") == "<string> is generated code"
    assert reason(planted, file="<eval_with_key>.3") == "<eval_with_key>.3 is generated code"
    assert reason(planted, file="gone.py") == "gone.py is not here"
    assert reason(planted, code="return None") == "planted.py has changed since"
    assert reason(planted, line=999) == "planted.py has changed since"
    assert "has no Model.backward" in reason(planted, function="Model.backward")


def test_a_file_that_is_no_source_of_the_roots_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("token", encoding="utf-8")
    inner = tmp_path / "inner"
    inner.mkdir()
    planted = Planted(inner, TEXT)
    (tmp_path / "outside.py").write_text("token", encoding="utf-8")
    for file in ("../outside.py", "../secret.txt", "planted.py\0"):
        assert reason(planted, file=file) == f"{file} is not here"


def test_a_file_that_cannot_be_parsed_or_is_too_large_is_told(tmp_path: Path) -> None:
    planted = Planted(tmp_path, "pass  # x")
    frame = planted.frame("<module>", "pass")
    planted.file.write_text("def broken(:", encoding="utf-8")
    assert Sources([tmp_path]).locate(frame) == Unavailable(reason="planted.py cannot be read: SyntaxError")
    planted.file.write_text("#" * (MOST_BYTES + 1), encoding="utf-8")
    assert Sources([tmp_path]).locate(frame) == Unavailable(reason="planted.py is too large to be read")


def test_nothing_of_the_file_runs(tmp_path: Path) -> None:
    planted = Planted(
        tmp_path,
        f"""
        open({str(tmp_path / "ran")!r}, "w")
        def f():
            return 1
    """,
    )
    planted.locate("f", "return 1")
    assert not (tmp_path / "ran").exists()
