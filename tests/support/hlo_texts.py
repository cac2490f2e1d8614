"""Small HLO modules as text, for tests of single opcodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.load.hlo import read_text


def module(*instructions: str, before: str = "", header: str = "") -> str:
    """A module whose entry has these instructions, the last one its root."""
    *rest, root = instructions
    body = "\n".join((*(f"  {line}" for line in rest), f"  ROOT {root}"))
    return f"HloModule m{header}\n\n{before}\nENTRY %main {{\n{body}\n}}\n"


def combiner(opcode: str, dtype: str = "f32", name: str = "combine") -> str:
    """A computation that combines two scalars by one opcode."""
    return (
        f"%{name} (a: {dtype}[], b: {dtype}[]) -> {dtype}[] {{\n"
        f"  %{name}.a = {dtype}[] parameter(0)\n  %{name}.b = {dtype}[] parameter(1)\n"
        f"  ROOT %{name}.r = {dtype}[] {opcode}(%{name}.a, %{name}.b)\n}}\n"
    )


def loaded(text: str) -> Graph:
    """The graph of a text, checked."""
    graph = read_text(text)
    check(graph)
    return graph


def run(text: str, inputs: Mapping[str, NDArray[Any] | list[NDArray[Any]]]) -> list[NDArray[Any]]:
    """The first output of a text's graph on every rank."""
    return evaluate(loaded(text), inputs)["output.0"]


def array(*shape: int, seed: int = 0) -> NDArray[Any]:
    """Reproducible numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape)
