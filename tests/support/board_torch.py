"""The system of ``board_system`` in PyTorch: its operators are custom ones that give a simulated board work.

Tensors are the processor's, and the arithmetic is NumPy's: magneton's tracer would open operators that call
PyTorch's own, and see none that gives the board work. The energy is the board's.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from board_system import BoardSystem, values_of
from torch import Tensor

from magneton.systems.running import Facts, Setup
from magneton.workload import Phase

SYSTEM = "board_torch:TorchBoardSystem"
_running: list[BoardSystem] = []  # the one of this process, which operators are part of


@torch.library.custom_op("board::attend", mutates_args=())
def attend(x: Tensor) -> Tensor:
    _running[-1].run("attend")
    return torch.from_numpy(np.cumsum(x.numpy()))


@torch.library.custom_op("board::project", mutates_args=())
def project(hidden: Tensor) -> Tensor:
    _running[-1].run("project")
    return torch.from_numpy(hidden.numpy() * 2.0)


class TorchBoardSystem(BoardSystem):
    """Implements ``magneton.systems.running.RunningSystem``."""

    framework = "torch"

    def load(self, setup: Setup) -> Facts:
        facts = super().load(setup)
        _running.append(self)
        self._inputs = {phase: torch.from_numpy(values_of(phase)["x"]) for phase in self.phases()}
        return facts

    def step(self, phase: Phase) -> Mapping[str, Any]:
        with torch.no_grad():
            logits = torch.ops.board.project(torch.ops.board.attend(self._inputs[phase]))
        self.note()
        return {"hidden state": logits}

    def roots(self) -> Mapping[str, Any]:
        return {"input": {f"{phase}.x": x for phase, x in self._inputs.items()}}
