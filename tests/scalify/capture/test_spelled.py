"""Operators without a meaning of their own are what PyTorch says they do: the same values, nothing opaque."""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false
# Operators of lists have no public names.

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_graphs import (
    Applied,
    Cases,
    assert_same,
    booleans,
    expected,
    integers,
    opaque_targets,
    reals,
    through_file,
    values,
)

from scalify.capture import captured
from scalify.errors import CaptureFailed
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate

CASES = Cases()


@CASES.add(reals(6, 5), integers(0, 5, 6))
def smoothed_losses(x: Tensor, target: Tensor) -> object:
    return (
        F.cross_entropy(x, target, label_smoothing=0.1),
        F.cross_entropy(x, target, label_smoothing=0.1, ignore_index=1, reduction="sum"),
        F.cross_entropy(x, x.softmax(-1)),
        F.cross_entropy(x, target, x[0].abs()),
        F.cross_entropy(x, target, x[0].abs(), ignore_index=1, label_smoothing=0.1),
        F.cross_entropy(x, target, x[0].abs(), reduction="none"),
        F.cross_entropy(x, target),
    )


@CASES.add(reals(6, 5), reals(6, 5))
def losses(x: Tensor, y: Tensor) -> object:
    return (
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        F.smooth_l1_loss(x, y, beta=0.5),
        F.huber_loss(x, y, reduction="none"),
        F.l1_loss(x, y),
        F.cosine_similarity(x, y, dim=-1),
    )


@CASES.add(reals(3, 4))
def activations(x: Tensor) -> object:
    return (
        F.hardswish(x),
        F.mish(x),
        F.celu(x),
        F.softshrink(x),
        F.prelu(x, torch.ones_like(x[0]) / 3),
        x.logit(0.1),
    )


@CASES.add(reals(2, 5, 3, 8), reals(5, 4))
def complex_rotation(x: Tensor, angles: Tensor) -> Tensor:
    turned = torch.view_as_complex(x.reshape(2, 5, 3, 4, 2))
    return torch.view_as_real(turned * torch.polar(torch.ones_like(angles), angles)[:, None]).flatten(3)


@CASES.add(reals(3, 4), reals(3, 4))
def statistics(x: Tensor, y: Tensor) -> object:
    return (*torch.std_mean(x, 1), x.nan_to_num(0.5), *torch.aminmax(x), x.quantile(0.3, 1), torch.kron(x, y))


@CASES.add(reals(2, 8, 4, 4))
def images(x: Tensor) -> object:
    return (
        F.pixel_shuffle(x, 2),
        F.instance_norm(x),
        F.unfold(x, 2),
        x.rot90(1, (2, 3)),
        F.pad(x, (1, 1, 1, 1), mode="reflect"),
    )


@CASES.add(reals(4), reals(4))
def tensors_at_once(x: Tensor, y: Tensor) -> object:
    first, second = x.clone(), y.clone()
    torch._foreach_mul_([first, second], 0.5)
    torch._foreach_add_([first, second], [second, first], alpha=-0.1)
    torch._foreach_addcdiv_([first, second], [second, first], [first, first], 0.3)
    torch._foreach_lerp_([first, second], [x, y], 0.2)
    return first, second, *torch._foreach_sqrt([x.abs(), y.abs()]), *torch._foreach_norm([x, y])


@CASES.add(reals(5, 2, 3), booleans(4))
def after_views_in_place(x: Tensor, mask: Tensor) -> object:
    copy = x.clone().unsqueeze_(1)
    copy.transpose_(2, 3)
    return copy * 2, mask.count_nonzero()


@pytest.mark.parametrize("name", CASES.names)
def test_the_parts_compute_what_the_whole_does(name: str) -> None:
    function, args = CASES[name]
    graph = captured(lambda: (Applied(function), args), name=name)
    check(graph)

    assert opaque_targets(graph) == []
    assert_same(values(graph, None, args), expected(function, args))


@pytest.mark.parametrize("name", ["smoothed_losses", "statistics", "tensors_at_once"])
def test_the_parts_go_through_a_file(name: str, tmp_path: Path) -> None:
    function, args = CASES[name]
    graph = through_file(Applied(function), args, tmp_path)

    assert opaque_targets(graph) == []
    assert_same(values(graph, None, args), expected(function, args))


def test_what_stood_in_a_composite_stays_one() -> None:
    def plain_and_smoothed(x: Tensor, target: Tensor) -> object:
        return F.cross_entropy(x, target), F.cross_entropy(x, target, label_smoothing=0.1)

    args = (reals(6, 5), integers(0, 5, 6))
    graph = captured(lambda: (plain_and_smoothed, args), name="two")
    assert [node.op for node in graph.nodes].count("cross_entropy") == 1


def test_parts_stand_at_the_line_of_the_call() -> None:
    graph = captured(lambda: (lambda x: F.hardswish(x), (reals(3),)), name="line")
    assert {node.site.file for node in graph.nodes if node.site} == {__file__}
    assert all(node.site for node in graph.nodes if node.op != "input")


def test_running_statistics_are_results_while_training() -> None:
    norm = nn.BatchNorm1d(4, dtype=torch.float64)
    x = reals(3, 4, 5)
    given = {name: value.clone().numpy() for name, value in norm.state_dict().items()}
    graph = captured(lambda: (norm, (x,)), name="norm")
    found = evaluate(graph, {**given, str(graph.inputs()[-1].attrs["name"]): x.numpy()})
    by_alias = {output.alias or "result": found[output.name][0] for output in graph.outputs}

    fresh = nn.BatchNorm1d(4, dtype=torch.float64)
    np.testing.assert_allclose(by_alias["result"], fresh(x).detach().numpy())
    np.testing.assert_allclose(by_alias["running_mean"], fresh.state_dict()["running_mean"].numpy())
    np.testing.assert_allclose(by_alias["running_var"], fresh.state_dict()["running_var"].numpy())
    assert by_alias["num_batches_tracked"] == 1


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (lambda x: x[x > 0], (reals(4),), "is of a size that depends on values"),
        (lambda x: x.nonzero(), (reals(4),), "is of a size that depends on values"),
        (lambda x: x * x.sum().item(), (reals(4),), "is read out of a tensor"),
        (lambda x, i: x[i], (reals(4), torch.tensor(1)), "is read out of a tensor"),
    ],
)
def test_what_depends_on_values_is_refused_at_its_line(
    function: object, args: Sequence[Tensor], message: str
) -> None:
    with pytest.raises(CaptureFailed, match=message) as error:
        captured(lambda: (function, tuple(args)), name="refused")
    assert __file__ in str(error.value)
    assert error.value.hint
