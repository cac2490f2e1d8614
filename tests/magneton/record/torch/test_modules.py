"""Which module is running."""

# pyright: reportPrivateUsage=false
# PyTorch offers no public list of the global hooks.

import pytest
from torch import Tensor, nn, ones
from torch.nn.modules import module as torch_module

from magneton.record.torch.modules import ModulePath


class Noting(nn.Module):
    """Notes the path while it runs, then runs what is inside."""

    def __init__(self, paths: list[ModulePath], notes: list[str], *inside: nn.Module) -> None:
        super().__init__()
        self.inside = nn.ModuleList(inside)
        self.paths, self.notes = paths, notes

    def forward(self, x: Tensor) -> Tensor:
        self.notes.append(self.paths[0].current())
        for module in self.inside:
            x = module(x)
        return x


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError("stop")


def test_paths_follow_the_calls():
    paths, notes = list[ModulePath](), list[str]()
    shared = Noting(paths, notes)
    model = Noting(paths, notes, Noting(paths, notes, shared), shared)
    paths.append(ModulePath({"": model}))
    with paths[0].followed():
        model(ones(1))
        notes.append(paths[0].current())
    assert notes == ["", "inside.0", "inside.0.inside.0", "inside.0.inside.0", ""]


def test_the_name_of_a_root_goes_first():
    paths, notes = list[ModulePath](), list[str]()
    draft = Noting(paths, notes, Noting(paths, notes))
    paths.append(ModulePath({"draft": draft, "input": {"ids": ones(1)}}))
    with paths[0].followed():
        draft(ones(1))
    assert notes == ["draft", "draft.inside.0"]


def test_a_module_without_a_name_counts_to_the_one_around_it():
    paths, notes = list[ModulePath](), list[str]()
    stranger = Noting(paths, notes)
    child = Noting(paths, notes)
    model = Noting(paths, notes, child)
    paths.append(ModulePath({"": model}))
    child.inside.append(stranger)
    with paths[0].followed():
        model(ones(1))
    assert notes == ["", "inside.0", "inside.0"]


def test_an_exception_closes_the_modules_it_leaves():
    paths, notes = list[ModulePath](), list[str]()
    model = Noting(paths, notes, Failing())
    paths.append(ModulePath({"": model}))
    with paths[0].followed():
        with pytest.raises(ValueError, match="stop"):
            model(ones(1))
        assert paths[0].current() == ""


def test_no_hook_is_left_behind():
    before = len(torch_module._global_forward_hooks), len(torch_module._global_forward_pre_hooks)
    with pytest.raises(ValueError, match="stop"), ModulePath({}).followed():
        Failing()(ones(1))
    after = len(torch_module._global_forward_hooks), len(torch_module._global_forward_pre_hooks)
    assert after == before
