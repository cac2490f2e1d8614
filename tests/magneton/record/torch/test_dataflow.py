"""What the dataflow pass writes down, and that it changes nothing."""

# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false
# Steps are short lambdas over tensors; foreach operators have no public name.

import json
import linecache
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.profile.model import Operator, Profile, Value
from magneton.record.torch.attributes import attributes_json
from magneton.record.torch.capture import trace_callable
from magneton.record.torch.dataflow import Recorder


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def named(profile: Profile, name: str) -> tuple[Operator, ...]:
    return tuple(op for op in profile.operators if op.name.split(".")[1] == name)


def only(profile: Profile, name: str) -> Operator:
    (operator,) = named(profile, name)
    return operator


def values(profile: Profile, role: str) -> tuple[Value, ...]:
    return tuple(value for value in profile.values if value.role == role)


def ancestors(profile: Profile, operator: Operator) -> set[str]:
    """Names of the operators that ``operator`` depends on."""
    found: set[int] = set()
    waiting = list(operator.inputs)
    while waiting:
        producer = profile.values[waiting.pop()].producer
        if producer is not None and producer not in found:
            found.add(producer)
            waiting += profile.operators[producer].inputs
    return {profile.operators[op_id].name.split(".")[1] for op_id in found}


def same_sketch(profile: Profile, one: int, other: int) -> bool:
    table = profile.sketches
    return bool(table.known[one]) and bool((table.cos_sum[one] == table.cos_sum[other]).all())


def test_a_chain_of_operators():
    profile = trace_callable(lambda x, y: torch.relu(x @ y), (randn(3, 4), randn(4, 5)))
    product, relu = profile.operators
    assert (product.name, relu.name) == ("aten.mm.default", "aten.relu.default")
    assert [profile.values[i].name for i in product.inputs] == ["args.0", "args.1"]
    assert [profile.values[i].role for i in product.inputs] == ["input", "input"]
    assert relu.inputs == product.outputs
    assert profile.values[relu.outputs[0]].shape == (3, 5)
    assert profile.values[relu.outputs[0]].producer == relu.op_id
    assert product.effect == relu.effect == "compute"
    assert profile.sketches.known.all()


def test_keyword_tensors_and_lists_are_inputs():
    x, y, z = randn(2, 3), randn(2, 3, seed=1), randn(2, 3, seed=2)
    profile = trace_callable(lambda: torch.cat([x, y, x, z]).add(other=torch.cat((y, y, y, y))), ())
    first, _, add = profile.operators
    assert len(first.inputs) == 4
    assert first.inputs[0] == first.inputs[2]
    assert len(add.inputs) == 2


def test_an_in_place_operator_leaves_the_value_before_intact():
    def step(x: Tensor) -> Tensor:
        y = x * 2
        return y.add_(x) + y

    profile = trace_callable(step, (randn(40),))
    double, add, last = profile.operators
    (before,) = double.outputs
    (after,) = add.outputs
    assert add.mutated == (after,)
    assert add.inputs[0] == before
    assert last.inputs == (after, after)
    assert profile.sketches.rms[after] == pytest.approx(1.5 * profile.sketches.rms[before])
    assert profile.values[after].storage_id == profile.values[before].storage_id
    assert profile.values[after].version == profile.values[before].version + 1


def test_a_write_through_a_view_reaches_the_base():
    def step(x: Tensor) -> Tensor:
        y = x.clone()
        y[1].mul_(100)
        return y.sum()

    profile = trace_callable(step, (randn(3, 8),))
    scale, total = only(profile, "mul_"), only(profile, "sum")
    assert total.inputs == scale.outputs[1:]  # the whole of y, which only the later read asked for
    assert scale.mutated == scale.outputs[:1]
    assert profile.values[total.inputs[0]].shape == (3, 8)
    assert profile.sketches.rms[total.inputs[0]] > 10
    assert {"clone", "mul_"} <= ancestors(profile, total)


def test_a_view_made_before_a_write_shows_it():
    def step(x: Tensor) -> Tensor:
        y = x.clone()
        head = y[:2]
        y.zero_()
        return head.exp()

    profile = trace_callable(step, (randn(4),))
    read = only(profile, "exp")
    assert profile.values[read.inputs[0]].producer == only(profile, "zero_").op_id
    assert profile.sketches.rms[read.inputs[0]] == 0.0


def test_layers_that_share_one_storage_do_not_depend_on_each_other():
    def step(cache: Tensor, x: Tensor) -> Tensor:
        cache[0, :, 2:3] = x.sin()
        first = cache[0, :, :3].sum()
        cache[1, :, 2:3] = x.cos()
        return first + cache[1, :, :3].prod()

    profile = trace_callable(step, (randn(2, 4, 8, 3), randn(4, 1, 3)))
    assert {"sin", "copy_"} <= ancestors(profile, only(profile, "sum"))
    assert "cos" in ancestors(profile, only(profile, "prod"))
    assert "sin" not in ancestors(profile, only(profile, "prod"))
    assert "cos" not in ancestors(profile, only(profile, "sum"))


def test_interleaved_halves_of_one_storage_are_apart():
    def step(x: Tensor) -> Tensor:
        y = torch.empty(4, 6)
        torch.sin(x, out=y[:, :3])
        torch.cos(x, out=y[:, 3:])
        return y[:, :3].sum()

    profile = trace_callable(step, (randn(4, 3),))
    assert "cos" not in ancestors(profile, only(profile, "sum"))


def test_a_cache_filled_step_by_step_depends_on_every_step():
    def step(x: Tensor) -> Tensor:
        cache = torch.zeros(2, 8, 3)
        for place, function in enumerate((torch.sin, torch.cos, torch.exp)):
            cache[:, place : place + 1] = function(x)
        return cache[:, :3].sum()

    profile = trace_callable(step, (randn(2, 1, 3),))
    assert {"sin", "cos", "exp", "zeros"} <= ancestors(profile, only(profile, "sum"))
    read = profile.values[only(profile, "sum").inputs[0]]
    expected = torch.cat([f(randn(2, 1, 3)) for f in (torch.sin, torch.cos, torch.exp)], 1)
    assert profile.sketches.rms[read.value_id] == pytest.approx(float(expected.square().mean().sqrt()))


def test_a_reused_workspace_ties_no_layers_together():
    def step(x: Tensor) -> Tensor:
        work = torch.empty(3)
        first = torch.sin(x, out=work) * 2
        torch.cos(x, out=work)
        return first + work.exp()

    profile = trace_callable(step, (randn(3),))
    assert "sin" not in ancestors(profile, only(profile, "exp"))
    assert "cos" not in ancestors(profile, only(profile, "mul"))
    assert "empty" in ancestors(profile, only(profile, "mul"))


def test_masked_and_indexed_writes_read_what_they_keep():
    def step(x: Tensor) -> Tensor:
        y = x.exp()
        y[y > 1] = 0.0
        y.index_copy_(0, torch.tensor([1]), x[:1])
        return y.sum()

    profile = trace_callable(step, (randn(4, 3),))
    assert {"exp", "gt", "index_put_", "index_copy_"} <= ancestors(profile, only(profile, "sum"))
    for name in ("index_put_", "index_copy_"):
        assert len(only(profile, name).mutated) == 1


def test_out_arguments_are_outputs():
    result = torch.empty(3)
    profile = trace_callable(lambda x: torch.add(x, 1, out=result).neg(), (randn(3),))
    add, neg = profile.operators
    assert add.outputs == add.mutated == neg.inputs


def test_foreach_operators_overwrite_lists():
    tensors = [randn(3), randn(4)]
    profile = trace_callable(lambda: torch._foreach_mul_(tensors, 2.0), ())
    (operator,) = profile.operators
    assert len(operator.inputs) == 2
    assert len(operator.outputs) == 2
    assert operator.mutated == operator.outputs


def test_memory_that_is_only_allocated_is_no_value():
    profile = trace_callable(lambda x: torch.empty_like(x).view(-1), (randn(3, 4),))
    assert [op.effect for op in profile.operators] == ["alloc", "view"]
    made = [op.outputs[0] for op in profile.operators]
    assert not profile.sketches.known[made].any()


def test_views_are_values_of_their_own():
    profile = trace_callable(lambda x: x.t().split(2)[1], (randn(3, 4),))
    transposed, split = profile.operators
    assert transposed.effect == split.effect == "view"
    assert len(split.outputs) == 2
    assert same_sketch(profile, transposed.inputs[0], transposed.outputs[0])
    assert not same_sketch(profile, split.outputs[0], split.outputs[1])
    assert split.bytes_moved == split.flops == 0


def test_freed_memory_that_is_handed_out_again_is_another_storage():
    def step(x: Tensor) -> None:
        for factor in range(20):
            y = x * factor
            address = y.data_ptr()
            del y
            addresses.append(address)

    addresses: list[int] = []
    profile = trace_callable(step, (randn(1000),))
    assert len(set(addresses)) < 20
    made = [profile.values[op.outputs[0]] for op in profile.operators]
    assert len({value.storage_id for value in made}) == 20
    assert {value.version for value in made} == {1}
    assert len({float(profile.sketches.rms[value.value_id]) for value in made}) == 20


def test_intermediates_are_not_kept_alive():
    def step(x: Tensor) -> Tensor:
        y = x * 2
        storage = StorageWeakRef(y.untyped_storage())
        z = y.sum()
        expired.append(storage.expired())
        del y
        expired.append(storage.expired())
        return z

    expired: list[bool] = []
    trace_callable(step, (randn(100),))
    assert expired == [False, True]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.norm = nn.BatchNorm1d(4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.embed(ids)))


def test_tied_weights_are_one_value_with_the_first_name():
    profile = trace_callable(Tied().eval(), (torch.tensor([1, 2, 3]),))
    names = {value.name for value in values(profile, "parameter")}
    assert names == {"embed.weight", "norm.weight", "norm.bias"}
    (weight,) = (value for value in profile.values if value.name == "embed.weight")
    readers = [op for op in profile.operators if weight.value_id in op.inputs]
    assert [op.module_path for op in readers] == ["embed", "head"]
    assert {value.name for value in values(profile, "buffer")} == {"norm.running_mean", "norm.running_var"}


def test_a_view_made_before_the_step_is_a_named_constant():
    module = nn.Linear(4, 4, bias=False)
    flat, transposed = module.weight.view(4, 4), module.weight.t()
    module.forward = lambda x: x @ flat + x @ transposed  # type: ignore[method-assign]  # a made-up step
    profile = trace_callable(module, (randn(2, 4),))
    sources = {value.name: value.role for value in profile.values if value.producer is None}
    assert sources == {"args.0": "input", "weight": "constant"}
    assert len(values(profile, "parameter")) == 1


def test_module_paths_follow_calls_and_exceptions():
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Tanh(), nn.Sigmoid())

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).neg()

    profile = trace_callable(Block(), (randn(3),))
    assert [op.module_path for op in profile.operators] == ["inner.0", "inner.1", ""]


def test_stacks_name_the_line_of_the_user():
    profile = trace_callable(lambda x: F.softmax(x.exp(), -1), (randn(3),))  # the line
    for operator in profile.operators:
        (frame,) = profile.stacks[operator.stack_id].frames
        assert __file__.endswith(frame.file)
        assert frame.code.endswith("# the line")
        assert linecache.getline(__file__, frame.line).strip() == frame.code


def test_results_and_random_state_are_the_same_with_and_without():
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 8))
    x = randn(4, 8)
    torch.manual_seed(1)
    plain = module(x)
    after = torch.get_rng_state()
    torch.manual_seed(1)
    results: list[Tensor] = []
    trace_callable(lambda: results.append(module(x)), ())
    assert torch.equal(results[0], plain)
    assert torch.equal(torch.get_rng_state(), after)


def test_effects():
    def step(x: Tensor) -> float:
        x = torch.dropout(x, 0.5, True) + torch.rand(3) + F.dropout(x, 0.5, False)
        F.scaled_dot_product_attention(x[None], x[None], x[None])
        torch.nonzero(x[x > 0])
        return x.sum().item()

    effects = {op.name.split(".")[1]: op.effect for op in trace_callable(step, (randn(3),)).operators}
    assert effects["bernoulli_"] == effects["rand"] == "random"
    assert effects["index"] == effects["nonzero"] == effects["_local_scalar_dense"] == "sync"
    assert effects["sum"] == effects["add"] == effects["div_"] == "compute"


def test_the_grad_mode_does_not_change_what_is_seen():
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    x = randn(2, 3, 8)

    def names(context: Any) -> list[str]:
        with context:
            return [op.name for op in trace_callable(module, (x,)).operators]

    expected = names(torch.no_grad())
    assert "aten.addmm.default" in expected
    assert names(torch.inference_mode()) == expected


def test_a_training_step_shows_its_backward_operators_and_updates():
    module = nn.Linear(4, 4)
    x = randn(2, 4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step() -> None:
        with torch.enable_grad():
            loss = module(x).square().sum()
            loss.backward()
        optimizer.step()

    recorder = Recorder()
    with recorder.phase("call", {"": module}) as first:
        step()
    with recorder.phase("call", {"": module}) as second:
        step()
    assert [op for op in first.trace.operators if "mm" in op.name]
    weights = [
        value for recording in (first, second) for value in recording.trace.values if value.name == "weight"
    ]
    assert len(weights) == 2  # the update made another value of it
    assert module.weight.grad is not None


def test_phases_share_ids_and_parameters():
    module = nn.Linear(4, 4)
    recorder = Recorder()
    cache = torch.zeros(2, 4)
    with recorder.phase("prefill", {"": module}) as prefill:
        cache.copy_(module(randn(2, 4)))
    cache.zero_()
    with recorder.phase("decode", {"": module}) as decode:
        module(cache)
    first, second = prefill.trace, decode.trace
    assert second.operators[0].op_id == len(first.operators)
    assert second.values[0].value_id == len(first.values)
    assert {op.phase for op in second.operators} == {"decode"}
    assert not [value for value in second.values if value.role == "parameter"]
    (left,) = (value for value in second.values if value.producer is None)
    assert left.role == "constant"
    assert dict(second.sketches)[left.value_id].rms == 0.0  # type: ignore[union-attr]  # None would fail too
    assert {op.key_id for op in first.operators} & {op.key_id for op in second.operators}


def test_an_exception_goes_on_unchanged_and_leaves_no_hook():
    class Failing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.neg() @ torch.ones(7)

    recorder, x = Recorder(), randn(3)
    with pytest.raises(RuntimeError, match="size"), recorder.phase("call", {}) as recording:
        Failing()(x)
    assert [op.name for op in recording.trace.operators] == ["aten.neg.default", "aten.ones.default"]
    count = len(recording.trace.operators)
    nn.Identity()(randn(3)).neg()
    assert len(recording.trace.operators) == count


def test_other_modes_see_the_operators_and_nothing_else():
    class Witness(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    x = randn(9)
    with Witness():
        profile = trace_callable(lambda: x.exp().sum(), ())
    assert seen == [op.name for op in profile.operators] == ["aten.exp.default", "aten.sum.default"]
    with Recorder().phase("call", {}) as recording, Witness():
        x.neg()
    assert [op.name for op in recording.trace.operators] == ["aten.neg.default"]


def test_a_custom_operator_that_overwrites():
    profile = trace_callable(lambda x: _halve(x.clone()), (randn(4),))
    clone, halve = profile.operators
    assert halve.inputs == clone.outputs
    assert len(halve.mutated) == 1
    assert profile.sketches.rms[halve.mutated[0]] == pytest.approx(
        0.5 * profile.sketches.rms[clone.outputs[0]]
    )


@torch.library.custom_op("magneton_tests::halve_", mutates_args=("x",))
def _halve(x: Tensor) -> None:
    x.mul_(0.5)


class Wrapped(Tensor):
    """A wrapper subclass that unpacks itself."""

    packed: Tensor

    @staticmethod
    def __new__(cls: type["Wrapped"], packed: Tensor) -> "Wrapped":
        # The one way to make a wrapper subclass, and PyTorch's stubs do not have it.
        made = Tensor._make_wrapper_subclass(cls, packed.shape, dtype=packed.dtype)  # type: ignore[attr-defined]
        made.packed = packed
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["packed"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        unwrapped = [arg.packed if isinstance(arg, Wrapped) else arg for arg in args]
        return Wrapped(func(*unwrapped, **(kwargs or {})))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    "step",
    [
        lambda: Wrapped(randn(3)) + 1,
        lambda: torch.eye(3).to_sparse() @ torch.ones(3, 3),
        lambda: torch.ones(3, device="meta").sum(),
        lambda: torch.ones(3, dtype=torch.complex64).conj().sin(),
        lambda: torch.empty(0).sum(),
        lambda: randn(4).resize_(2, 2).sum(),
        lambda: randn(4, 2).t_().sum(),
        lambda: torch.empty(0).set_(randn(4).untyped_storage()).sum(),
        lambda: torch.stft(randn(64), 16, return_complex=True, window=torch.hann_window(16)).abs(),
        lambda: nn.LSTM(3, 4)(randn(5, 2, 3)),
        lambda: torch.nested.nested_tensor([randn(2), randn(3)]),
        lambda: torch.unique(torch.tensor([1, 1, 2])),
        lambda: torch.cond(torch.tensor(True), lambda x: x.sin(), lambda x: x.cos(), (randn(3),)),
    ],
)
def test_unusual_tensors_do_no_harm(step: Callable[[], object]):
    profile = trace_callable(step, ())
    assert profile.operators
    known = [i for i, value in enumerate(profile.values) if value.value_id != i]
    assert not known


@pytest.mark.filterwarnings("ignore:Using `torch.compile")
@pytest.mark.parametrize("fullgraph", [False, True])
def test_compiled_code_shows_its_operators(fullgraph: bool):
    module = torch.compile(nn.Sequential(nn.Tanh(), nn.Sigmoid()), backend="eager", fullgraph=fullgraph)
    operators = trace_callable(module, (randn(2, 3),)).operators
    assert [op.name for op in operators] == ["aten.tanh.default", "aten.sigmoid.default"]


def test_a_collective_overwrites_its_tensors(tmp_path: Path):
    def step(x: Tensor) -> Tensor:
        y = x * 2
        dist.all_reduce(y)
        return y.exp()

    store = f"file://{tmp_path / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        profile = trace_callable(step, (randn(3),))
    finally:
        dist.destroy_process_group()
    _, reduce, exp = profile.operators
    assert reduce.effect == "compute"
    assert exp.inputs == reduce.mutated == reduce.outputs


def test_flops_and_bytes_of_an_operator():
    profile = trace_callable(lambda x, y: x @ y, (randn(3, 4), randn(4, 5)))
    (product,) = profile.operators
    assert product.flops == 2 * 3 * 4 * 5
    assert product.bytes_moved == 4 * (12 + 20 + 15)


def test_attributes_are_bounded_json():
    profile = trace_callable(lambda x: x.sum(1, keepdim=True)[torch.tensor([0])], (randn(3, 4),))
    assert only(profile, "sum").attributes == '{"dim":[1],"keepdim":true}'
    assert only(profile, "index").attributes == '{"indices":["T"]}'


def test_long_attributes_are_cut():
    text = attributes_json({"sizes": list(range(10_000)), "name": "x" * 5000, "tensor": torch.ones(1)})
    assert len(text) < 1100
    assert "truncated" in json.loads(text)
    assert json.loads(attributes_json({"p": float("inf"), "dtype": torch.half})) == {
        "p": "inf",
        "dtype": "torch.float16",
    }


@pytest.mark.parametrize(
    "module", [nn.Upsample(scale_factor=2), nn.Dropout(0.5), nn.LSTM(4, 4), nn.Conv2d(3, 3, 1)]
)
def test_the_same_operators_run_with_inference_mode_as_without_gradients(module: nn.Module):
    x = torch.randn(2, 5, 4) if isinstance(module, nn.LSTM) else torch.randn(1, 3, 4, 4)

    def names(mode: Callable[[], AbstractContextManager[object]]) -> list[str]:
        with mode():
            profile = trace_callable(module, (x,))
        return [operator.name for operator in profile.operators if operator.effect != "view"]

    assert names(torch.inference_mode) == names(torch.no_grad)


def test_a_parameter_is_one_in_every_phase_whatever_views_were_made_of_it():
    """An engine takes ``weight.data``: the same bytes in the same shape, but not another value."""
    model, x, recorder = nn.Linear(3, 3, bias=False), randn(2, 3), Recorder()
    read: list[Value] = []
    for phase in ("prefill", "decode"):
        with recorder.phase(phase, {"": model}) as recording:
            torch.mm(x, model.weight.data)
        (detach,) = (op for op in recording.trace.operators if op.name.startswith("aten.detach"))
        rows = {row.value_id: row for row in recording.trace.values} | {row.value_id: row for row in read}
        read.append(rows[detach.inputs[0]])
    assert read[0] == read[1]
    assert (read[0].role, read[0].name) == ("parameter", "weight")


@pytest.mark.parametrize("grad_mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("positions", [slice(None), slice(-1, None)])
def test_composites_are_cut_as_they_run_where_nobody_watches(
    grad_mode: Callable[[], AbstractContextManager[None]], positions: slice
):
    """A product of three dimensions with a parameter folds into one matrix product; with less, into many."""
    layer, x = nn.Linear(24, 48, bias=False), randn(3, 5, 24)
    seen: list[Tensor] = []

    def step(x: Tensor) -> None:
        seen.append(layer(x[:, positions]))

    with grad_mode():
        step(x)
        with torch.profiler.profile() as profiler:
            step(x)
        profile = trace_callable(step, (x,))
    ran = {event.name for event in profiler.events() or ()}
    traced = {op.name.removeprefix("aten.").partition(".")[0] for op in profile.operators}
    assert traced & {"mm", "bmm"} == {name for name in ("mm", "bmm") if f"aten::{name}" in ran}
    torch.testing.assert_close(seen[2], seen[0], rtol=0, atol=0)
