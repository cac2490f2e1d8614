"""A bench on the simulated library: work whose power and length are known, in virtual time.

``simulated_bench:SimulatedBench`` for validate.sh. The boards are those of the process's environment.
"""

from collections.abc import Callable, Mapping

from gpu.bench import Case, Subject
from simulated_board import Simulation, Work

from magneton.meters.clock import Clock

# About as long as what the real bench runs: watts and seconds of an execution, and seconds between two.
OPERATORS: Mapping[str, Work] = {
    "gemm bf16": Work(busy_w=660.0, busy_s=4e-4),
    "gemm fp32": Work(busy_w=520.0, busy_s=2.9e-3),
    "layer norm": Work(busy_w=480.0, busy_s=8e-5),
    "add": Work(busy_w=300.0, busy_s=4e-6, gap_s=2e-6),
    "softmax": Work(busy_w=450.0, busy_s=2.5e-4),
    "embedding": Work(busy_w=430.0, busy_s=4.5e-5),
}
# Costly and lean; the energy ratios are planted: 1.5, 1.1, 1.05, and none at all.
CASES: Mapping[str, tuple[Work, Work]] = {
    "c8": (Work(busy_w=500.0, busy_s=1.5e-3), Work(busy_w=500.0, busy_s=1e-3)),
    "c10": (Work(busy_w=550.0, busy_s=4e-4), Work(busy_w=500.0, busy_s=4e-4)),
    "c12": (Work(busy_w=420.0, busy_s=1e-3), Work(busy_w=500.0, busy_s=8e-4)),
    "c13": (Work(busy_w=450.0, busy_s=3e-4), Work(busy_w=450.0, busy_s=3e-4)),
}


class SimulatedBench:
    """On board 0."""

    shortest = "add"

    def __init__(self, device: str) -> None:
        self.device = device
        self._simulation = Simulation.joined()
        self.clock: Clock = self._simulation

    def machine(self) -> Mapping[str, str]:
        return {"device": "a simulated board"}

    def operators(self) -> Mapping[str, Callable[[], Subject]]:
        return {
            name: lambda name=name, work=work: self._subject(name, work) for name, work in OPERATORS.items()
        }

    def cases(self) -> Mapping[str, Callable[[], Case]]:
        return {name: lambda name=name: self._case(name) for name in CASES}

    def synchronise(self) -> None:
        self._simulation.synchronize(0)

    def _case(self, name: str) -> Case:
        costly, lean = CASES[name]
        return Case(
            name=name,
            title=f"planted {joules(costly) / joules(lean):.2f}",
            costly=self._subject("costly", costly),
            lean=self._subject("lean", lean),
            published=0.1,
        )

    def _subject(self, name: str, work: Work) -> Subject:
        return Subject(name=name, what=str(work), run=lambda times: self._simulation.launch(0, work, times))


def joules(work: Work) -> float:
    """Of the busy part of one execution."""
    return work.busy_w * work.busy_s
