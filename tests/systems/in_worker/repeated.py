"""Systems whose steps are repeated, and must be the same to the bit, before anything is recorded of them.

Imported in a system's own interpreter, as ``repeated:Vllm``.
"""

from typing import Any, ClassVar

from magneton.errors import MagnetonError
from magneton.systems.outputs import Array, finish_outputs
from magneton.systems.running import Facts, RunningSystem, Setup
from magneton.worker.choose import open_system
from magneton.workload import DECODE, PREFILL, Phase

# Each phase follows itself and the other one: whatever a step leaves behind is met by the next.
ORDER: tuple[Phase, ...] = (PREFILL, DECODE, DECODE, PREFILL, PREFILL, DECODE)


class Repeated:
    """The system called ``name``, and in all else the same as it."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._system: RunningSystem = open_system(self.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def load(self, setup: Setup) -> Facts:
        facts = self._system.load(setup)
        first: dict[tuple[Phase, str], Array] = {}
        for number, phase in enumerate(ORDER):
            if phase in setup.workload.phases:
                self._check(number, phase, first)
        return facts

    def _check(self, number: int, phase: Phase, first: dict[tuple[Phase, str], Array]) -> None:
        self._system.rewind(phase)
        for name, array in finish_outputs(self._system.step(phase)).items():
            if first.setdefault((phase, name), array.copy()).tobytes() != array.tobytes():
                raise MagnetonError(
                    f"step {number} of {', '.join(ORDER)} gives other {name} than the first such step",
                    hint="rewinding left something behind",
                )


class Torch(Repeated):
    name = "torch"


class Transformers(Repeated):
    name = "transformers"


class Vllm(Repeated):
    name = "vllm"


class Sglang(Repeated):
    name = "sglang"
