"""Replay reads every class of operators, and the step computes what it computes alone."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from looking import Load, LookingMeter
from on_board import OnBoard
from torch.utils._python_dispatch import TorchDispatchMode
from torch_steps import ClockMeter, FakeClock

from magneton.meters.meter import Reading
from magneton.profile.model import KeyId, ReplayReading
from magneton.record.journal import Rejected
from magneton.record.torch.copies import WRITES
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.in_place import EVERY, InPlaceReader, empty_call
from magneton.record.torch.keys import operator_key
from magneton.record.torch.looping import OUT_OF_TIME, OVERRUN, LoopReader, dearest
from magneton.record.torch.replay import KeyReader, ReplayMode
from magneton.record.windows import Windows
from magneton.workload import CALL

aten = torch.ops.aten


def no_wait() -> None:
    """Everything here runs on the host."""


def nothing() -> None:
    """A call that costs nothing, for tests that price everything else."""


class EveryKey(dict[str, KeyId]):
    """As if the dataflow pass had seen whatever comes."""

    def get(self, key: str, default: Any = None) -> KeyId:
        return self.setdefault(key, KeyId(len(self)))


class Cached:
    """One step of a decoder: random draws, an in-place cache, accumulation, host reads, outputs given."""

    def __init__(self) -> None:
        self.cache = torch.zeros(2, 8, 16)
        self.total = torch.zeros(16)
        self.place = torch.tensor([3])
        self.own = torch.Generator().manual_seed(5)
        torch.manual_seed(0)
        self.x = torch.randn(2, 1, 16)
        self.weight = torch.randn(16, 16)

    def step(self) -> tuple[torch.Tensor, ...]:
        x = F.dropout(self.x, 0.5, training=True)
        self.cache.index_copy_(1, self.place, x @ self.weight)
        self.total.add_(self.cache.sum((0, 1)))
        self.total[1:].copy_(self.total[:-1].clone())
        out = torch.empty(2, 8, 16)
        torch.mul(self.cache, 2.0, out=out)
        out += torch.empty_like(out).normal_(generator=self.own)
        if out.sum().item() > 0:
            out = out + torch.rand(16)
        picked = out[out > 0.1]
        return out, picked, self.total.clone(), self.cache.clone(), torch.rand(3)


def in_place() -> KeyReader:
    return InPlaceReader(ClockMeter(), no_wait, nothing)


def looping() -> KeyReader:
    return LoopReader(Windows(ClockMeter(shortest_window_s=1e-4)), budget_s=60.0)


@pytest.mark.parametrize("reader", [in_place, looping])
@pytest.mark.parametrize("grad", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_results_are_bit_equal_with_and_without_replay(
    reader: Callable[[], KeyReader], grad: Callable[[], Any]
):
    def run(watched: bool) -> list[torch.Tensor]:
        with grad():
            model = Cached()
            first = model.step()
            if not watched:
                return [*first, *model.step(), *model.step()]
            with ReplayMode(EveryKey(), reader()):
                second = model.step()
            return [*first, *second, *model.step()]

    alone, watched = run(False), run(True)
    assert all(one.equal(other) for one, other in zip(alone, watched, strict=True))


@pytest.mark.parametrize("reader", [in_place, looping])
def test_a_training_step_learns_the_same_with_and_without_replay(reader: Callable[[], KeyReader]):
    def train(watched: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        optimiser = torch.optim.AdamW(model.parameters(), foreach=True)
        x = torch.randn(4, 8)

        def step() -> None:
            optimiser.zero_grad()
            model(x).square().mean().backward()
            optimiser.step()

        step()
        if watched:
            with ReplayMode(EveryKey(), reader()):
                step()
        else:
            step()
        return [parameter.detach() for parameter in model.parameters()]

    assert all(one.equal(other) for one, other in zip(train(False), train(True), strict=True))


def read(reader: KeyReader, step: Callable[[], object]) -> dict[KeyId, ReplayReading]:
    with ReplayMode(EveryKey(), reader):
        step()
    return {row.key_id: row for row in reader.readings(4)}


X = torch.zeros(2, 2)


class Prices(TorchDispatchMode):
    """Below the replay: charges each execution to a clock that stands still otherwise."""

    prices_s: ClassVar[Mapping[str, float]] = {
        "aten.mm.default": 0.3,
        "aten.add_.Tensor": 0.5,
        "aten.neg.default": 0.0,
    }

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.executions: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.executions[str(func)] += 1
        self.clock.spend(self.prices_s.get(str(func), 0.2))
        return func(*args, **(kwargs or {}))

    def read(
        self, step: Callable[[], object], *, budget_s: float = 1e9, chosen: Collection[KeyId] | None = None
    ) -> tuple[LoopReader, list[ReplayReading]]:
        meter = ClockMeter(self.clock, power_w=4.0, shortest_window_s=2.0)
        reader = LoopReader(Windows(meter, clock=self.clock), budget_s=budget_s, chosen=chosen)
        with self, ReplayMode(EveryKey(), reader):
            step()
        return reader, list(reader.readings(4))


def test_in_place_reads_every_execution_of_every_key():
    x, y = torch.randn(32, 32), torch.randn(32, 32)

    def step() -> object:
        return [x @ y for _ in range(3)], (x + y).view(-1)

    rows = read(in_place(), step)
    assert [row.executions for row in rows.values()] == [3, 1, 1]
    assert all(row.round == 4 and row.energy_j is not None for row in rows.values())


def test_in_place_runs_nothing_twice():
    prices = Prices()
    with prices, ReplayMode(EveryKey(), in_place()):
        torch.mm(X, X)
    assert prices.executions == {"aten.mm.default": 1}


def test_what_the_meter_costs_is_taken_off_and_nothing_falls_below_zero():
    prices = Prices()

    def slow_clock() -> float:
        prices.clock.spend(0.25)
        return prices.clock()

    reader = InPlaceReader(ClockMeter(slow_clock, power_w=3.0), no_wait, nothing)
    with prices, ReplayMode(EveryKey(), reader):
        torch.neg(X)
        torch.mm(X, X)
    free, dear = reader.readings(0)
    assert (dear.duration_s, dear.energy_j) == (pytest.approx(0.3), pytest.approx(0.9))
    assert (free.duration_s, free.energy_j) == (0.0, 0.0)


def test_an_operator_below_the_cost_of_reading_it_is_zero_and_never_negative():
    ticks_s = iter([0.0, 1.0, 0.0, 0.4])
    reader = InPlaceReader(ClockMeter(lambda: next(ticks_s)), no_wait, nothing)
    (row,) = read(reader, lambda: torch.ones(4)).values()
    assert (row.duration_s, row.energy_j) == (0.0, 0.0)


def test_what_a_call_costs_is_read_throughout_the_step_and_taken_off():
    prices = Prices()
    calls: list[float] = []

    def expensive_nothing() -> None:
        prices.clock.spend(0.1)
        calls.append(prices.clock())

    reader = InPlaceReader(ClockMeter(prices.clock, power_w=3.0), no_wait, expensive_nothing)
    with prices, ReplayMode(EveryKey(), reader):
        for _ in range(2 * EVERY + 1):
            torch.mm(X, X)
    (row,) = reader.readings(0)
    assert len(calls) == 3
    assert (row.duration_s, row.energy_j) == (pytest.approx(0.2), pytest.approx(0.6))


def test_the_empty_call_of_torch_costs_less_than_any_work():
    empty = empty_call()
    big = torch.randn(256, 256)

    def fastest_s(call: Callable[[], object]) -> float:
        def once() -> float:
            began_s = time.process_time()
            call()
            return time.process_time() - began_s

        return min(once() for _ in range(50))

    assert fastest_s(empty) < fastest_s(lambda: torch.ops.aten.mm.default(big, big)) / 4


def test_a_meter_without_energy_leaves_none_and_still_times():
    reader = InPlaceReader(ClockMeter(reads=False), no_wait)
    (row,) = read(reader, lambda: torch.ones(4)).values()
    assert row.energy_j is None


def test_a_loop_is_as_long_as_the_meter_needs_and_counts_per_execution():
    _, (row,) = Prices().read(lambda: X @ X)
    assert row.executions * 0.3 >= 2.0
    assert row.duration_s == pytest.approx(0.3)
    assert row.energy_j == pytest.approx(4.0 * 0.3)


def test_each_key_is_read_once():
    once, twice = Prices(), Prices()
    once.read(lambda: X @ X)
    twice.read(lambda: (X @ X, X @ X))
    assert twice.executions["aten.mm.default"] == once.executions["aten.mm.default"] + 1


def test_what_is_changed_in_place_is_put_back_and_the_cost_of_that_is_taken_off():
    x = torch.zeros(2)
    prices = Prices()
    _, (row,) = prices.read(lambda: x.add_(1))
    assert x.tolist() == [1.0, 1.0]
    assert prices.executions["aten.add_.Tensor"] > 3
    assert row.duration_s == pytest.approx(0.5)
    assert row.energy_j == pytest.approx(2.0)


def test_keys_that_are_not_worth_the_time_or_come_too_late_are_skipped():
    def step() -> object:
        return X @ X, X + X

    reader, rows = Prices().read(step, chosen=frozenset((KeyId(1),)))
    assert [row.key_id for row in rows] == [KeyId(1)]
    assert reader.skipped() == {KeyId(0): OUT_OF_TIME}
    hurried, rows = Prices().read(step, budget_s=4.0)
    assert [row.key_id for row in rows] == [KeyId(0)]
    assert hurried.skipped() == {KeyId(1): OUT_OF_TIME}


def test_time_goes_to_the_keys_that_cost_most_over_all_their_executions():
    often, heavy, cheap = KeyId(0), KeyId(1), KeyId(2)
    costs = [(cheap, 1.0), *((often, 2.0) for _ in range(4)), (heavy, 7.0)]

    def one_second(key_id: KeyId) -> float:
        return 1.0

    assert dearest(costs, one_second, 1.5) == {often}
    assert dearest(costs, one_second, 2.0) == {often, heavy}
    assert dearest(costs, one_second, 0.9) == frozenset()
    assert dearest(costs, one_second, 9.0) == {often, heavy, cheap}
    assert dearest(costs, lambda key_id: 3.0 if key_id == often else 1.0, 2.0) == {heavy, cheap}


def test_a_window_that_stays_too_short_is_no_reading():
    class Shrinking(ClockMeter):
        """Its windows seem ever shorter: what a clock that jumps back looks like."""

        def end(self) -> Reading:
            whole = super().end()
            return Reading(duration_s=min(1.0, whole.duration_s), energy_j=whole.energy_j)

    prices = Prices()
    meter = Shrinking(prices.clock, shortest_window_s=2.0)
    reader = LoopReader(Windows(meter, clock=prices.clock), budget_s=1e9)
    with prices, ReplayMode(EveryKey(), reader):
        torch.mm(X, X)
    (row,) = reader.readings(0)
    assert row.energy_j is None


class Drawing(TorchDispatchMode):
    """Below the replay: every execution draws from a load in virtual time."""

    prices: ClassVar[Mapping[str, tuple[float, float]]] = {  # seconds, watts
        "aten.mm.default": (0.01, 300.0),
        "aten.relu.default": (0.02, 150.0),
        "aten.add_.Tensor": (0.02, 150.0),
        "aten.copy_.default": (0.01, 150.0),
    }

    def __init__(self, load: Load) -> None:
        super().__init__()
        self.load = load
        self.executions: Counter[str] = Counter()
        self.memory: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.executions[str(func)] += 1
        if str(func) in self.prices:
            self.load.draw(*self.prices[str(func)])
            self.memory.append(args[0].data_ptr())
        return func(*args, **(kwargs or {}))


def forty_bytes(device: torch.device) -> int:
    """The last cache of whatever device."""
    del device
    return 40


def replayed(meter: LookingMeter, load: Load, step: Callable[[], object], **options: Any) -> LoopReader:
    reader = LoopReader(Windows(meter, clock=load), budget_s=1e9, phase="decode", **options)
    with Drawing(load), ReplayMode(EveryKey(), reader):
        step()
    return reader


def test_an_operator_runs_for_a_second_before_a_sensor_is_asked():
    load = Load()
    meter = LookingMeter(load)
    replayed(meter, load, lambda: X @ X)
    first_s = 0.01  # once, to keep its result
    assert meter.began_s[0] - first_s - load.slept_s[0] >= 1.0
    assert meter.pieces == [pytest.approx(2.2 / 0.01, abs=1)]


def test_a_short_window_shortens_no_warm_up():
    load = Load()
    meter = LookingMeter(load, shortest_window_s=0.5)
    replayed(meter, load, lambda: X @ X)
    assert meter.began_s[0] >= 1.0


def test_a_window_that_was_spoilt_is_read_again_and_told():
    load = Load()
    reader = LoopReader(
        windows := Windows(LookingMeter(load, gaps=["hot"]), clock=load), budget_s=1e9, phase="decode"
    )
    with Drawing(load), ReplayMode(EveryKey(), reader):
        torch.mm(X, X)
    (row,) = reader.readings(0)
    assert row.energy_j == pytest.approx(3.0, rel=0.05) and row.gap == ""
    assert windows.take_notes() == [Rejected(kind="replay", phase="decode", why="hot")]


def test_a_key_whose_windows_were_all_spoilt_keeps_its_time_and_says_why():
    load = Load()
    (row,) = replayed(LookingMeter(load, gaps=["hot"] * 9), load, lambda: X @ X).readings(0)
    assert (row.energy_j, row.gap) == (None, "hot")
    assert row.duration_s == pytest.approx(0.01)


def test_once_the_meter_is_lost_no_operator_is_repeated():
    load = Load()
    reader = replayed(LookingMeter(load, lost_after=0), load, lambda: (X @ X, X.relu()))
    (row,) = reader.readings(0)
    assert row.energy_j is None and "fallen off the bus" in row.gap
    assert "fallen off the bus" in reader.skipped()[KeyId(1)]


def test_cold_caches_are_those_of_copies_taken_in_turn():
    load = Load()
    reader = LoopReader(
        Windows(LookingMeter(load), clock=load), budget_s=1e9, cache="cold", cache_bytes=forty_bytes
    )
    with Drawing(load) as drawing, ReplayMode(EveryKey(), reader):
        torch.mm(X, X)
    used = Counter(drawing.memory)
    assert len(used) == 11  # 40 bytes four times over, in matrices of 16 bytes, and the given one
    assert max(used.values()) - min(used.values()) <= 3  # the given one also gives the results
    assert not reader.warm


def test_what_cannot_be_cold_is_read_warm_and_named():
    load = Load()
    x = torch.zeros(2, 2)
    reader = replayed(LookingMeter(load), load, lambda: x.add_(1), cache="cold", cache_bytes=forty_bytes)
    assert reader.warm == {WRITES: {"aten.add_.Tensor"}}


class Captured:
    """Graphs that need no board: what launching costs above the kernels is saved."""

    def __init__(self, load: Load, kernels_s: float, *, works: bool = True) -> None:
        self.load = load
        self.kernels_s = kernels_s
        self.works = works
        self.asked: list[int] = []
        self.replayed = 0

    def capture(self, once: Callable[[], object], executions: int) -> Callable[[], object] | None:
        self.asked.append(executions)
        return self.replay if self.works else None

    def replay(self) -> None:
        self.replayed += 1
        self.load.draw(self.asked[-1] * self.kernels_s, 400.0)


def read_on_board(graphs: Captured, kernels_s: float) -> ReplayReading:
    """One product of matrices, 10 ms from launch to launch."""
    load = graphs.load
    reader = LoopReader(
        Windows(LookingMeter(load), clock=load),
        budget_s=1e9,
        kernels_s={KeyId(0): kernels_s},
        graphs=graphs,
    )
    x = torch.zeros(2, 2).as_subclass(OnBoard)
    with Drawing(load):
        reader.execute(KeyId(0), aten.mm.default, (x, x), {})
    (row,) = reader.readings(0)
    return row


def test_what_is_launched_more_slowly_than_it_runs_is_repeated_in_a_graph():
    load = Load()
    graphs = Captured(load, 0.002)
    row = read_on_board(graphs, 0.002)
    assert graphs.asked == [64] and graphs.replayed > 1
    assert row.executions % 64 == 0
    assert row.duration_s == pytest.approx(0.002)
    assert row.energy_j == pytest.approx(0.002 * 400.0, rel=0.01)
    assert row.busy_share == pytest.approx(1.0)


def test_what_cannot_be_captured_stays_a_loop_and_tells_how_idle_the_device_was():
    load = Load()
    graphs = Captured(load, 0.002, works=False)
    row = read_on_board(graphs, 0.002)
    assert graphs.asked == [64] and graphs.replayed == 0
    assert row.duration_s == pytest.approx(0.01)
    assert row.busy_share == pytest.approx(0.2)


def test_what_runs_as_long_as_it_takes_to_launch_is_not_captured():
    load = Load()
    graphs = Captured(load, 0.009)
    row = read_on_board(graphs, 0.009)
    assert graphs.asked == []
    assert row.busy_share == pytest.approx(0.9)
    assert read_on_board(Captured(Load(), 0.02), 0.02).busy_share == 1.0  # slower under the profiler


def test_a_loop_on_the_host_knows_no_busy_share():
    load = Load()
    (row,) = replayed(LookingMeter(load), load, lambda: X @ X).readings(0)
    assert row.busy_share is None


def test_an_operator_with_a_memory_of_its_own_is_named():
    library = torch.library.Library("magneton_counts", "DEF")
    calls: list[int] = []

    def count(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + len(calls)

    library.define("count(Tensor x) -> Tensor")
    library.impl("count", count, "CPU")
    reader = looping()
    assert isinstance(reader, LoopReader)
    reader.execute(KeyId(0), torch.ops.magneton_counts.count.default, (X,), {})
    reader.execute(KeyId(1), aten.mm.default, (X, X), {})
    assert reader.differing == {"magneton_counts.count.default"}


def test_chosen_keys_may_overrun_their_budget_and_not_for_ever():
    def step() -> object:
        return X @ X, X + X, X - X

    everything = frozenset(map(KeyId, range(3)))
    _, rows = Prices().read(step, chosen=everything, budget_s=20.0)
    assert len(rows) == 3
    reader, rows = Prices().read(step, chosen=everything, budget_s=4.0)
    assert 0 < len(rows) < 3
    assert set(reader.skipped().values()) == {OUT_OF_TIME}
    assert OVERRUN > 1


def test_reasons_to_skip_are_kept_by_key():
    reader = looping()
    x = torch.ones(4)
    rows = read(reader, lambda: (x.view(2, 2), x.nonzero(), x + 1))
    assert list(rows) == [KeyId(2)]
    assert {key_id: reason.split(":")[0] for key_id, reason in reader.skipped().items()} == {
        KeyId(0): "view",
        KeyId(1): "sync",
    }


def test_operators_that_were_not_traced_run_unread_and_are_counted():
    x = torch.ones(4)
    known: Mapping[str, KeyId] = {operator_key(aten.add.Tensor, (x, 1), {}): KeyId(7)}
    reader = in_place()
    mode = ReplayMode(known, reader)
    with mode:
        y = (x + 1) * 3
    assert y.tolist() == [6.0] * 4
    assert (mode.executed, mode.strangers) == (2, 1)
    assert [row.key_id for row in reader.readings(0)] == [KeyId(7)]


def test_composites_are_cut_as_the_dataflow_pass_cuts_them():
    x, weight = torch.randn(3, 4), torch.randn(5, 4)
    with torch.inference_mode():
        expected = F.linear(x, weight)
        rows = read(in_place(), lambda: F.linear(x, weight))
        mode = ReplayMode(EveryKey(), in_place())
        with mode:
            result = F.linear(x, weight)
    assert len(rows) == 2  # t, mm
    assert result.equal(expected)


class Counting:
    """An engine's counter of requests: its content is another one in every step."""

    def __init__(self) -> None:
        self.counter = torch.zeros(3, dtype=torch.int64)

    def step(self) -> torch.Tensor:
        self.counter.add_(1)
        return self.counter[torch.tensor([0])] * 2


def test_an_operator_on_a_counter_that_goes_on_is_met_again_at_its_place():
    system, recorder = Counting(), Recorder()
    with recorder.phase(CALL, {}) as recording:
        system.step()
    reader = in_place()
    mode = ReplayMode(recorder.key_ids, reader, traced=recording.trace.operators)
    with mode:
        system.step()
    assert mode.strangers == 0
    assert {row.key_id for row in reader.readings(0)} == {op.key_id for op in recording.trace.operators}


def test_another_operator_at_that_place_is_a_stranger():
    recorder = Recorder()
    with recorder.phase(CALL, {}) as recording:
        torch.zeros(3, dtype=torch.int64).add_(1)
    mode = ReplayMode(recorder.key_ids, in_place(), traced=recording.trace.operators)
    with mode:
        torch.zeros(3, dtype=torch.int64).mul_(2)
    assert mode.strangers == 1
