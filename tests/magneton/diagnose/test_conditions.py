import ast
from pathlib import Path

import pytest
from planted import Planted

from magneton.diagnose.conditions import Condition, deciding, dispatching, separating

BRANCHES = """
    def f(self, x, mode):
        first = x
        if self.config.fused and mode == "a":
            x = one(x)
        elif mode is other:
            x = two(x)
        else:
            x = three(x)
        if quick():
            return early(x)
        x = late(x)
        while x.more[0]:
            x = turn(x)
        match self.kind:
            case "k":
                x = matched(x)
            case _:
                x = unmatched(x)
        for each in self.items:
            x = looped(x)
        y = picked(x) if self.flag else (
            left_out(x)
        )
        if debug:
            check(x)
        return final(x)
"""


def between(tmp_path: Path, baseline: str, candidate: str) -> tuple[str, list[str]] | None:
    planted = Planted(tmp_path, BRANCHES)
    node = planted.locate("f", "first = x").node
    return shown(separating(node, planted.line(baseline), planted.line(candidate)))


def shown(condition: Condition | None) -> tuple[str, list[str]] | None:
    return condition and (condition.kind, [ast.unparse(each) for each in condition.deciding])


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        (" one(x)", " three(x)", ("if", ["self.config.fused", "mode"])),
        (" two(x)", " three(x)", ("if", ["mode", "other"])),
        ("early(x)", " late(x)", ("early exit", ["quick()"])),
        ("first = x", "final(x)", ("early exit", ["quick()"])),
        (" late(x)", "turn(x)", ("while", ["x.more[0]"])),
        (" matched(x)", "unmatched(x)", ("match", ["self.kind"])),
        ("looped(x)", "final(x)", ("for", ["self.items"])),
        (" picked(x)", "left_out(x)", ("ternary", ["self.flag"])),
        ("check(x)", "final(x)", ("if", ["debug"])),
    ],
)
def test_the_test_between_two_lines(
    tmp_path: Path, baseline: str, candidate: str, expected: tuple[str, list[str]]
) -> None:
    assert between(tmp_path, baseline, candidate) == expected
    assert between(tmp_path, candidate, baseline) == expected


def test_lines_that_follow_each_other_have_no_test_between(tmp_path: Path) -> None:
    assert between(tmp_path, "if debug", "final(x)") is None


@pytest.mark.parametrize(
    ("line", "baseline", "candidate", "expected"),
    [
        ("y = attend(x)", "eager", "fused", ("dispatch", ["attend"])),
        ("y = norm(attend(x))", "norm", "norm", ("dispatch", ["attend"])),
        ("y = self.act(x)", "SiLU.forward", "GELU.forward", ("dispatch", ["self.act"])),
        ("y = fast(x) if self.flag else slow(x)", "fast", "slow", ("ternary", ["self.flag"])),
        ("y = fast(x) if self.flag else x @ x", "fast", "", ("ternary", ["self.flag"])),
        ("y = (fast if flag else slow)(x)", "fast", "slow", ("ternary", ["flag"])),
        ("y = cached or slow(x)", "", "slow", ("boolean operator", ["cached"])),
        ("y = x + 1", "", "", None),
    ],
)
def test_what_decides_which_function_a_line_calls(
    tmp_path: Path, line: str, baseline: str, candidate: str, expected: tuple[str, list[str]] | None
) -> None:
    planted = Planted(tmp_path, f"def f(self, x):\n    {line}")
    node = planted.locate("f", "y =").node
    assert shown(dispatching(node, 2, baseline, candidate)) == expected


def test_operands_are_told_in_their_order_and_constants_left_out() -> None:
    test = ast.parse("not a.b and (c[0] > 3 or len(d) in e) and (n := g)", mode="eval").body
    assert [ast.unparse(each) for each in deciding(test)] == ["a.b", "c[0]", "len(d)", "e", "g"]
