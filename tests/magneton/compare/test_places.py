from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import small_profile

from magneton.compare.places import describe_work, merge_paths, source_line
from magneton.profile.model import Frame, Stack


def stack(*files: str) -> Stack:
    return Stack(frames=tuple(Frame(file=file, line=1, function="f", code="") for file in files))


def test_numbers_of_layers_become_ranges() -> None:
    layers = [f"model.layers.{n}.mlp" for n in (0, 1, 2, 5)]

    assert merge_paths(layers) == "model.layers.0-2,5.mlp"
    assert merge_paths(["h.0.experts.1", "h.1.experts.1"]) == "h.0-1.experts.1"
    assert merge_paths(["", ""]) == ""
    assert merge_paths(["a", "b"]) == "a, b"
    assert merge_paths(["conv2d", "conv2d"]) == "conv2d"  # a number inside a name is part of the name


def test_many_unlike_paths_are_counted() -> None:
    assert merge_paths(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@given(st.lists(st.text(max_size=20), max_size=5))
def test_any_path_can_be_merged(paths: list[str]) -> None:
    assert isinstance(merge_paths(paths), str)


def test_the_line_is_the_innermost_outside_the_tensor_library() -> None:
    site = "/env/lib/python3.11/site-packages"
    found = source_line(stack("run.py", f"{site}/transformers/modeling.py", f"{site}/torch/nn/functional.py"))

    assert found is not None
    assert found.file.endswith("modeling.py")


def test_a_folder_of_the_users_called_torch_is_theirs() -> None:
    found = source_line(stack("/home/me/torch/model.py"))

    assert found is not None


def test_our_own_adapters_are_named_only_where_nothing_else_is() -> None:
    ours = "/env/site-packages/magneton/systems/transformers.py"

    assert source_line(stack("model.py", ours)) == stack("model.py").frames[0]
    assert source_line(stack(ours)) == stack(ours).frames[0]
    assert source_line(stack("/env/site-packages/torch/nn/modules/linear.py")) is None


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([("sampling", "sampling")], "sampling"),
        ([("sampling", "sampling"), ("scheduling", "scheduling")], "sampling, scheduling"),
        ([("model.norm", "model forward"), ("sampling", "sampling")], "model.norm"),
        ([("", ""), ("sampling", "sampling")], "sampling"),
        ([("", "")], ""),
    ],
)
def test_outside_any_module_the_scope_says_where(places: list[tuple[str, str]], expected: str) -> None:
    base = small_profile(operators=len(places))
    profile = replace(
        base,
        operators=tuple(
            replace(op, module_path=path, scope=scope)
            for op, (path, scope) in zip(base.operators, places, strict=True)
        ),
    )
    ids = [op.op_id for op in profile.operators]
    assert describe_work(profile, [ids], lambda _: (0.0,)).module_path == expected
