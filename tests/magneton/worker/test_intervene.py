import gc
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getclosurevars
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_recording import QUICK, toy_request

from magneton.errors import MagnetonError
from magneton.interventions import (
    ForceBranch,
    Intervention,
    SetArgument,
    SetAttribute,
    SetEnvironment,
    SetFlag,
    SetOption,
)
from magneton.profile.model import Doubt, Profile
from magneton.record.request import RecordRequest, intervened
from magneton.record.session import record
from magneton.worker.interventions.apply import apply_after
from magneton.workload import CALL, Workload

PROGRAM = """\
import functools
import pathlib
import torch
from torch import nn


class Config:
    def __init__(self):
        self.fast = False
        self.kind = "plain"
        self.table = {}

    @property
    def fixed(self):
        return 1


def noisy(function):
    def around(*args, **kwargs):
        return function(*args, **kwargs)
    return around


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return attend(self.linear(x), self.config)


@noisy
def attend(x, config, *, scale=1.0):
    "Three calls deep."
    if (
        config.fast
        and x.ndim == 2
    ):
        return x.tanh()
    if (found := x.numel()) > 10**6:
        return x + found
    while x is None:
        x = torch.zeros(4)
    x = x.relu() if config.kind == "plain" else x.sigmoid()
    return finish(x * scale)


@functools.lru_cache
def chosen(kind):
    if kind == "cached":
        return 1
    return 2


def finish(x):
    return x.exp() if x is None else (x.log() if x.ndim == 9 else x.sin())


def build():
    slow = True
    model = nn.Sequential(Layer(Config()), Layer(Config()))

    def step(x):
        for _ in range(1):
            if slow:
                x = x.cos()

        def inner(x):
            if slow:
                return x.neg()
            return x.abs()

        return inner(model(x))

    return step, (torch.linspace(-1, 1, 8).reshape(2, 4),)
"""


def line_of(text: str, nth: int = 0) -> int:
    return [number for number, line in enumerate(PROGRAM.splitlines(), 1) if text in line][nth]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's file."""
    path = tmp_path_factory.mktemp("program") / "planted.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def before(place: Path) -> Profile:
    """The program as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGNETON_CACHE", str(place.parent / "cache"))
        return recorded(place)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "cache"))


def recorded(place: Path, *changes: Intervention) -> Profile:
    request = RecordRequest(
        system="callable",
        options={"path": str(place), "function": "build"},
        workload=Workload(phases=(CALL,)),
        meter="counted:operators",
    )
    return record(intervened(request, changes), QUICK)


def names(profile: Profile) -> list[str]:
    return [operator.name.split(".")[1] for operator in profile.operators]


def branch(text: str, function: str, *, taken: bool, nth: int = 0) -> ForceBranch:
    return ForceBranch(file="planted.py", function=function, line=line_of(text, nth), taken=taken)


class Here:
    """The program in this process, for what needs no recording. Its file is its own: it may be changed."""

    def __init__(self, folder: Path, tail: str = "") -> None:
        self.path = folder / "planted.py"
        self.path.write_text(PROGRAM + tail)
        spec = spec_from_file_location("planted", self.path)
        assert spec is not None and spec.loader is not None
        self.module = module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.step, self.arguments = self.module.build()
        self.model = getclosurevars(self.step).nonlocals["model"]

    def apply(self, *changes: Intervention) -> None:
        apply_after([self._aimed(each) for each in changes], "eager", lambda: {"model": self.model})

    def _aimed(self, change: Intervention) -> Intervention:
        aims_here = isinstance(change, ForceBranch | SetArgument) and change.file == "planted.py"
        return replace(change, file=str(self.path)) if aims_here else change

    def run(self) -> Tensor:
        return self.step(*self.arguments).detach()


def test_a_branch_three_calls_deep_takes_the_other_way(place: Path, before: Profile):
    forced = branch("config.fast", "attend", taken=True)
    after = recorded(place, forced)

    assert names(before).count("relu") == 2 and "tanh" not in names(before)
    assert names(after).count("tanh") == 2 and "relu" not in names(after)
    text = f"recorded with a change under test: {forced.text}"
    assert after.doubts == (*before.doubts, Doubt(kind="intervened", text=text))


def test_several_changes_hold_together(place: Path, before: Profile):
    changes = (
        branch('config.kind == "plain"', "attend", taken=False),
        SetArgument(file="planted.py", function="attend", name="scale", value=3.0),
        branch("if slow", "build.<locals>.step", taken=False),
        branch("if slow", "build.<locals>.step.<locals>.inner", taken=False, nth=1),
        SetAttribute(modules="model.1", attribute="config.fast", value=True),
    )
    after = recorded(place, *changes)

    assert names(before).count("relu") == 2 and {"neg", "cos"} <= set(names(before))
    assert names(after).count("sigmoid") == names(after).count("tanh") == names(after).count("abs") == 1
    assert not {"relu", "neg", "cos"} & set(names(after))
    scales = [operator.attributes for operator in after.operators if operator.name.startswith("aten.mul")]
    assert len(scales) == 1 and "3.0" in scales[0]
    assert [doubt.kind for doubt in after.doubts].count("intervened") == len(changes)
    assert not any(doubt.kind == "intervened" for doubt in before.doubts)


NEUTRAL: Sequence[Intervention] = (
    branch("config.fast", "attend", taken=False),
    branch("while x is None", "attend", taken=False),
    branch('config.kind == "plain"', "attend", taken=True),
    branch("if slow", "build.<locals>.step", taken=True),
    branch("if slow", "build.<locals>.step.<locals>.inner", taken=True, nth=1),
    SetArgument(file="planted.py", function="attend", name="scale", value=1.0),
    SetAttribute(modules="model.*", attribute="config.fast", value=False),
)


def test_what_happens_anyway_leaves_the_same_profile(place: Path, before: Profile):
    after = recorded(place, *NEUTRAL)

    assert after.operators == before.operators
    assert after.stacks == before.stacks
    for name, array in before.outputs.items():
        np.testing.assert_array_equal(after.outputs[name], array)


@given(chosen=st.permutations(NEUTRAL), count=st.integers(1, len(NEUTRAL)))
@settings(max_examples=20, deadline=None)
def test_whatever_happens_anyway_may_be_forced(
    tmp_path_factory: pytest.TempPathFactory, chosen: Sequence[Intervention], count: int
):
    here = Here(tmp_path_factory.mktemp("program"))
    expected = here.run()
    here.apply(*chosen[:count])

    assert torch.equal(here.run(), expected)


@given(value=st.floats(-1e3, 1e3, width=32) | st.integers(-1000, 1000) | st.booleans())
@settings(max_examples=20, deadline=None)
def test_an_argument_is_overwritten_whatever_is_passed(
    tmp_path_factory: pytest.TempPathFactory, value: float | bool
):
    here = Here(tmp_path_factory.mktemp("program"))
    x, config = here.arguments[0], here.module.Config()
    expected = here.module.attend(x, config, scale=value)
    here.apply(SetArgument(file="planted.py", function="attend", name="scale", value=value))

    assert torch.equal(here.module.attend(x, config, scale=7.0), expected)
    assert torch.equal(here.module.attend(x, config), expected)


def test_what_a_function_has_remembered_is_forgotten(tmp_path: Path):
    here = Here(tmp_path)
    assert here.module.chosen("plain") == 2
    here.apply(branch('kind == "cached"', "chosen", taken=True))

    assert here.module.chosen("plain") == 1


def test_what_was_frozen_after_loading_is_found(tmp_path: Path):
    here = Here(tmp_path)
    gc.freeze()
    try:
        here.apply(branch('kind == "cached"', "chosen", taken=True))
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()

    assert here.module.chosen("plain") == 1


def test_flags_are_set_before_the_system_looks_at_them(place: Path, before: Profile):
    flags: dict[str, bool | str] = {
        "torch.backends.mkldnn.enabled": False,
        "torch.backends.cudnn.benchmark": True,
        "torch.backends.cuda.flash_sdp": False,
        "torch.float32_matmul_precision": "medium",
        "torch.deterministic_algorithms": True,
    }
    after = recorded(place, *[SetFlag(name=name, value=value) for name, value in flags.items()])

    for name, value in flags.items():
        assert after.origin.flags[name] == str(value) != before.origin.flags[name]


def test_options_and_variables_leave_a_doubt_as_well():
    changes = (SetOption(name="step_s", value="0.0004"), SetEnvironment(name="TOY", value="1"))
    profile = record(intervened(toy_request(), changes), QUICK)

    assert profile.origin.options["step_s"] == "0.0004"
    assert [doubt.text.split(": ")[1] for doubt in profile.doubts if doubt.kind == "intervened"] == [
        "option step_s=0.0004",
        "environment variable TOY=1",
    ]


def test_a_recording_that_cannot_be_changed_ends_with_the_reason():
    change = SetAttribute(modules="model", attribute="fast", value=True)

    with pytest.raises(MagnetonError, match="attribute fast of model = true: no module has such a path"):
        record(intervened(toy_request(), [change]), QUICK)


def test_a_system_that_has_been_captured_is_not_edited():
    change = SetAttribute(modules="model", attribute="fast", value=True)

    with pytest.raises(MagnetonError, match="fixes what it runs while it loads"):
        apply_after([change], "graph", dict)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (branch("return x.tanh()", "attend", taken=True), "no if, while or conditional"),
        (branch("if x is None else", "finish", taken=True), "there are 2 tests"),
        (branch("found := ", "attend", taken=True), "also sets found"),
        (branch("while x is None", "attend", taken=True), "may never end"),
        (branch("config.fast", "attended", taken=True), "no such function is loaded"),
        (branch("config.fast", "finish", taken=True), "no if, while or conditional"),
        (ForceBranch(file="other.py", function="attend", line=1, taken=True), "no such function is loaded"),
        (SetArgument(file="planted.py", function="attend", name="y", value=1), "x, config, scale"),
        (SetAttribute(modules="model.7", attribute="config.fast", value=True), "no module has such a path"),
        (SetAttribute(modules="model.0", attribute="config.quick", value=True), "there is no quick"),
        (SetAttribute(modules="model.0", attribute="setup.fast", value=True), "there is no setup"),
        (SetAttribute(modules="model.0", attribute="config.table", value=1), "no plain value but a dict"),
        (SetAttribute(modules="model.0", attribute="config.fixed", value=2), "AttributeError"),
        (SetFlag(name="torch.backends.cudnn.benchmarks", value=True), "there is no benchmarks"),
        (SetFlag(name="nowhere.flag", value=True), "nowhere is not imported"),
        (SetFlag(name="flag", value=True), "flag is not imported"),
        (SetFlag(name="torch.num_threads", value=0), "RuntimeError"),
    ],
    ids=lambda item: item.text if not isinstance(item, str) else "",
)
def test_what_cannot_be_done_is_said_and_nothing_is_done(tmp_path: Path, change: Intervention, why: str):
    here = Here(tmp_path)
    expected = here.run()

    with pytest.raises(MagnetonError) as raised:
        here.apply(branch("config.fast", "attend", taken=True), change)

    assert str(raised.value).startswith("cannot be tested here: ")
    assert why in str(raised.value)
    if isinstance(change, ForceBranch | SetArgument):
        assert torch.equal(here.run(), expected)


@pytest.mark.parametrize(
    ("tail", "change", "why"),
    [
        (
            "\nown = pathlib.Path(__file__)\nown.write_text(own.read_text().replace('x.tanh', 'x.tan'))",
            branch("config.fast", "attend", taken=True),
            "not what its source says",
        ),
        (
            "\nexec('def made(x):\\n    if x: return 1')",
            ForceBranch(file="<string>", function="made", line=2, taken=True),
            "generated",
        ),
        (
            "\npathlib.Path(__file__).unlink()",
            branch("config.fast", "attend", taken=True),
            "not on this machine",
        ),
    ],
)
def test_code_without_its_source_is_left_alone(tmp_path: Path, tail: str, change: Intervention, why: str):
    here = Here(tmp_path, tail)

    with pytest.raises(MagnetonError, match=why):
        here.apply(change)


def test_an_option_that_the_parent_did_not_set_is_noticed():
    changes: Sequence[Intervention] = (SetOption(name="step_s", value="0.0004"),)

    with pytest.raises(MagnetonError, match="the system was given another value"):
        record(replace(toy_request(), interventions=tuple(changes)), QUICK)
