"""Two small attention models that differ in one thing each: whether it is noticed, and where it is placed.

From the traced operators to the verdict, as for a user's callables; only the meter is left out.
"""

# pyright: reportUnknownLambdaType=false
# What becomes of a result is PyTorch's business.

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magneton.compare.model import Comparison, Criteria, ValuePlace
from magneton.compare.profiles import compare_profiles
from magneton.profile.model import Profile
from magneton.record.torch.capture import trace_callable
from magneton.systems.outputs import finish_outputs
from magneton.systems.structure import named_leaves

B, T, D, HEADS = 2, 12, 32, 4
HEAD = D // HEADS


class Attention(nn.Module):
    """``join`` [B, H, T, head] -> [B, H, T, head] is what a case may change on the way to the output."""

    def __init__(self, join: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.join = join

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        scores = torch.softmax(q @ k.transpose(-1, -2) / HEAD**0.5, dim=-1)
        mixed = self.join(scores @ v)
        return self.o(mixed.transpose(1, 2).reshape(B, T, D))

    def split(self, x: Tensor) -> Tensor:
        return x.view(B, T, HEADS, HEAD).transpose(1, 2)


class Model(nn.Module):
    def __init__(self, join: Callable[[Tensor], Tensor] = lambda heads: heads) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention = Attention(join)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        self.head = nn.Linear(D, 5 * D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        x = x + self.down(torch.nn.functional.gelu(self.up(x)))
        return self.head(x)


def prompts() -> Tensor:
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(1))


def traced(target: Callable[..., Any], *args: Tensor) -> Profile:
    with torch.no_grad():
        profile = trace_callable(target, args)
        outputs = finish_outputs(dict(named_leaves(target(*args), "output")))
    return replace(profile, outputs={f"call.{name}": array for name, array in outputs.items()})


def compared(candidate: Profile, baseline: Profile | None = None) -> Comparison:
    return compare_profiles(baseline or traced(Model(), prompts()), candidate, Criteria())


def edited(edit: Callable[[Model], object]) -> Model:
    model = Model()
    with torch.no_grad():
        edit(model)
    return model


def differs(comparison: Comparison) -> tuple[str, ValuePlace, ValuePlace]:
    """The kind of divergence and its two places."""
    assert comparison.verdict == "not the same work"
    assert comparison.findings == ()
    assert comparison.same_work.divergence is not None
    found = comparison.same_work.divergence
    return found.text, found.baseline, found.candidate


def line_of(code: str, owner: Any = Attention) -> int:
    lines, first = inspect.getsourcelines(owner)
    return first + next(number for number, line in enumerate(lines) if code in line)


@pytest.mark.parametrize("by", [0.01, 0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    "name", ["attention.q.weight", "attention.o.weight", "up.weight", "up.bias", "head.weight"]
)
def test_one_changed_weight_is_named(name: str, by: float) -> None:
    def edit(model: Model) -> None:
        model.get_parameter(name).view(-1)[5] += by

    how, one, other = differs(compared(traced(edited(edit), prompts())))

    assert how == "other numbers"
    assert (one.name, one.role) == (other.name, other.role) == (name, "parameter")


def swap_rows(model: Model) -> None:
    q = model.attention.q.weight
    q.copy_(q.view(HEADS, HEAD, D)[[1, 0, 2, 3]].reshape(D, D))


def test_query_rows_swapped_by_heads_are_named() -> None:
    how, one, other = differs(compared(traced(edited(swap_rows), prompts())))

    assert how == "the same numbers in another order"
    assert one.name == other.name == "attention.q.weight"


def test_a_large_square_weight_that_is_transposed_is_named() -> None:
    """Summed in another order, its sketch is not the same to the last bit."""

    def linear(weight: Tensor) -> nn.Module:
        layer = nn.Linear(256, 256, bias=False)
        layer.weight = nn.Parameter(weight)
        return layer

    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(256, 256, generator=generator), torch.randn(8, 256, generator=generator)
    how, one, _ = differs(compared(traced(linear(weight.T.contiguous()), x), traced(linear(weight), x)))

    assert (how, one.name) == ("the same numbers in another order", "weight")


def swapped(heads: Tensor) -> Tensor:
    return heads[:, [1, 0, 2, 3]]


def test_swapped_heads_are_placed_where_they_are_swapped() -> None:
    how, one, other = differs(compared(traced(Model(swapped), prompts())))

    assert how == "the same numbers in another order"
    assert one.source is not None and other.source is not None
    assert one.module_path == "attention"
    assert one.source.line == line_of("scores @ v")
    assert other.source.line == line_of("return heads", swapped)


def test_swapped_prompts_are_named() -> None:
    how, one, other = differs(compared(traced(Model(), prompts().flip(0))))

    assert how == "the same numbers in another order"
    assert (one.role, other.role) == ("input", "input")


def test_prompts_swapped_inside_are_placed_where_they_are_swapped() -> None:
    def swapping(x: Tensor) -> Tensor:
        return model(x.flip(0))

    model = Model()
    how, _, other = differs(compared(traced(swapping, prompts()), traced(lambda x: model(x), prompts())))

    assert how == "the same numbers in another order"
    assert other.source is not None
    assert other.source.line == line_of("model(x.flip(0))", swapping)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda y: y.transpose(0, 1).contiguous(), "shape (2, 12, 160) against (12, 2, 160)"),
        (lambda y: y * 1.01, "differs by up to"),
        (lambda y: y[:, :-1], "shape"),
        (lambda y: y.masked_fill(y > 2.0, float("nan")), "NaNs stand in different places"),
        (lambda y: y.masked_fill(y > 2.0, float("inf")), "infinities or NaNs"),
        (lambda y: (y, y), "only the"),
        (lambda y: None, "only the baseline has this output"),
        (lambda y: y.double(), None),
        (lambda y: y > 0, "dtype float32 against bool"),
        (lambda y: y.flip(-1), "differs by up to"),
        (lambda y: y.roll(1, 0), "differs by up to"),
    ],
)
def test_what_happens_to_the_result_is_told(change: Callable[[Tensor], Any], problem: str | None) -> None:
    model = Model()
    comparison = compared(
        traced(lambda x: change(model(x)), prompts()), traced(lambda x: model(x), prompts())
    )

    if problem is None:
        assert comparison.same_work.status == "same"
        return
    assert comparison.verdict == "not the same work"
    assert problem in comparison.reason
    assert comparison.findings == ()


def test_a_square_result_that_is_transposed() -> None:
    def square(x: Tensor) -> Tensor:
        return x @ x

    x = torch.randn(16, 16, generator=torch.Generator().manual_seed(2))
    comparison = compared(traced(lambda x: square(x).T.contiguous(), x), traced(lambda x: square(x), x))

    assert comparison.verdict == "not the same work"
    assert "differs by up to" in comparison.reason


def spelled_otherwise(model: Model, x: Tensor) -> Tensor:
    """The same network: one matrix for queries, keys and values, a fused attention, products the other way
    round, sums in another order."""
    attention = model.attention
    joined = torch.cat([attention.q.weight, attention.k.weight, attention.v.weight])
    q, k, v = (
        part.reshape(B, T, HEADS, HEAD).permute(0, 2, 1, 3)
        for part in (joined @ x.reshape(B * T, D).T).T.reshape(B, T, 3 * D).split(D, dim=-1)
    )
    mixed = nn.functional.scaled_dot_product_attention(q, k, v).permute(2, 0, 1, 3)  # [T, B, H, head]
    x = nn.functional.linear(mixed.reshape(T, B, D).transpose(0, 1), attention.o.weight) + x
    hidden = nn.functional.gelu(
        torch.einsum("btd,hd->hbt", x, model.up.weight) + model.up.bias[:, None, None]
    )
    halves = hidden.chunk(2), model.down.weight.chunk(2, dim=1)
    x = model.down.bias + sum(torch.einsum("hbt,dh->btd", h, w) for h, w in zip(*halves, strict=True)) + x
    return x @ model.head.weight.t()


def test_the_same_work_spelled_otherwise_is_the_same_work() -> None:
    model = Model()
    comparison = compared(
        traced(lambda x: spelled_otherwise(model, x), prompts()), traced(lambda x: model(x), prompts())
    )

    assert comparison.same_work.status == "same"
    assert comparison.same_work.divergence is None


@pytest.mark.parametrize("edit", [swap_rows, lambda model: model.up.weight.view(-1)[5].add_(0.1)])
def test_a_change_is_still_named_where_the_rest_is_spelled_otherwise(edit: Callable[[Model], object]) -> None:
    class Spelled(Model):
        def forward(self, x: Tensor) -> Tensor:
            return spelled_otherwise(self, x)

    other = Spelled()
    with torch.no_grad():
        edit(other)
    _, one, changed = differs(compared(traced(other, prompts())))

    expected = "attention.q.weight" if edit is swap_rows else "up.weight"
    assert one.name == changed.name == expected


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize("change", ["1.01", "nan", "x.mean() - x.mean()"])
def test_what_only_one_side_does_with_the_result_is_placed(side: str, change: str) -> None:
    def scaled(x: Tensor) -> Tensor:
        factor = 1.01 if change == "1.01" else float("nan") if change == "nan" else 1 / (x.mean() - x.mean())
        return model(x) * factor

    model = Model()
    one, other = traced(scaled, prompts()), traced(model, prompts())
    how, *places = differs(compared(one, other) if side == "candidate" else compared(other, one))
    scaling, plain = reversed(places) if side == "candidate" else places

    assert how == "other numbers"
    assert scaling.source is not None and scaling.source.line == line_of("return model(x) *", scaled)
    assert (plain.module_path, plain.producer) == ("head", "aten.mm.default")
