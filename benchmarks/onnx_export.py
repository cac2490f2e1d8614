"""ONNX exports of a model against the model: those of both of torch's exporters, and edited ones.

    python benchmarks/onnx_export.py

A Llama and a GPT with random weights (``scalify_models/exported.py``) are exported to ONNX, for several
versions of its operators, with and without the exporters' own optimisation. Each export is a candidate that
should be proved against the model in memory; then one node or one stored number of it is changed, as a bug of
an exporter or an optimiser would, and it must not be. The command line is run on two of them, against the
captured graph, for its exit status.

Writes benchmarks/results/onnx_export.json; exits with 1 if an edited export was proved.
"""

import json
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from scalify_models.exported import MODELS, inputs
from torch import nn

import scalify
from scalify.capture import captured
from scalify.ir.text import save
from scalify.refute.budget import Search
from scalify.verdict import Proved

RESULT = Path(__file__).parent / "results" / "onnx_export.json"
SEED = 0
SEARCH_S = 15.0
PACKAGES = ("torch", "onnx", "onnxscript", "egglog", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One way to export: by the newer exporter, which reads torch.export's graph, or the older one."""

    name: str
    dynamo: bool
    opset: int
    is_optimised: bool = True


EXPORTS = (
    Export(name="dynamo, opset 18", dynamo=True, opset=18),
    Export(name="dynamo, opset 18, not optimised", dynamo=True, opset=18, is_optimised=False),
    Export(name="dynamo, opset 20", dynamo=True, opset=20),
    Export(name="dynamo, opset 23", dynamo=True, opset=23),
    Export(name="dynamo, opset 23, not optimised", dynamo=True, opset=23, is_optimised=False),
    Export(name="TorchScript, opset 17", dynamo=False, opset=17),
    Export(name="TorchScript, opset 17, not folded", dynamo=False, opset=17, is_optimised=False),
)
EDITED = ("dynamo, opset 18, not optimised", "dynamo, opset 23")

Edit = Callable[[Any], bool]
"""Changes a model; False where there is nothing in it to change."""


def _first(model: Any, op: str) -> Any:
    return next((node for node in model.graph.node if node.op_type == op), None)


def _heads_not_moved_back(model: Any) -> bool:
    """The last transposition of an attention's result is a reshape to the same sizes."""
    nodes = list(model.graph.node)
    makers = {node.output[0]: node for node in nodes}
    for node in nodes:
        before = makers.get(node.input[0]) if node.op_type == "Reshape" else None
        if before is not None and before.op_type == "Transpose" and "q" not in before.name:
            source = makers.get(before.input[0])
            if source is not None and source.op_type in ("MatMul", "Attention"):
                node.input[0] = before.input[0]
                return True
    return False


def _scale_dropped(model: Any) -> bool:
    """Queries are not scaled, or attention is told a scale of one."""
    attention = _first(model, "Attention")
    if attention is not None:
        kept = [attribute for attribute in attention.attribute if attribute.name != "scale"]
        del attention.attribute[:]
        attention.attribute.extend([*kept, onnx.helper.make_attribute("scale", 1.0)])
        return True
    softmax = _first(model, "Softmax")
    makers = {node.output[0]: node for node in model.graph.node}
    node = makers[softmax.input[0]]
    while node.op_type != "Mul":
        node = makers[node.input[0]]
    return _passed_on(node, 0)


def _passed_on(node: Any, place: int) -> bool:
    """The node gives one of its operands."""
    kept = node.input[place]
    node.op_type = "Identity"
    del node.input[:]
    node.input.append(kept)
    return True


def _causal_mask_lost(model: Any) -> bool:
    attention = _first(model, "Attention")
    if attention is not None:
        for attribute in attention.attribute:
            if attribute.name == "is_causal":
                attribute.i = 0
                return True
        return False
    softmax = _first(model, "Softmax")
    node = next(node for node in model.graph.node if node.output[0] == softmax.input[0])
    return node.op_type == "Add" and _passed_on(node, 0)


def _keys_and_values_swapped(model: Any) -> bool:
    """The products of two layers of equal sizes read each other's weights."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    turned = {node.output[0]: node for node in model.graph.node if node.op_type == "Transpose"}
    readers: list[tuple[Any, int]] = []
    for node in model.graph.node:
        if node.op_type != "MatMul":
            continue
        before = turned.get(node.input[1])
        readers.append((node, 1) if before is None else (before, 0))
    held = [(node, place) for node, place in readers if node.input[place] in shapes]
    for (one, at), (other, there) in pairwise(held):
        if shapes[one.input[at]] == shapes[other.input[there]]:
            one.input[at], other.input[there] = other.input[there], one.input[at]
            return True
    return False


def _residual_dropped(model: Any) -> bool:
    stored = {tensor.name for tensor in model.graph.initializer}
    adds = [node for node in model.graph.node if node.op_type == "Add" and not stored & set(node.input)]
    makers = {node.output[0]: node.op_type for node in model.graph.node}
    for node in reversed(adds):
        if makers.get(node.input[1]) in ("MatMul", "Gemm", "Add"):
            return _passed_on(node, 1)
    return False


def _epsilon_larger(model: Any) -> bool:
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "epsilon":
                attribute.f = 1e-3
                return True
    for tensor in _constants(model):
        values = numpy_helper.to_array(tensor)
        if values.size == 1 and values.dtype == np.float32 and 0 < float(values.flat[0]) < 1e-4:
            tensor.CopyFrom(numpy_helper.from_array(values * 1000, tensor.name))
            return True
    return False


def _constants(model: Any) -> Iterator[Any]:
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.name == "value":
                yield attribute.t


def _sign_of_rotation_lost(model: Any) -> bool:
    node = _first(model, "Neg")
    return node is not None and _passed_on(node, 0)


def _gelu_exact(model: Any) -> bool:
    node = _first(model, "Gelu")
    if node is None:
        return False
    del node.attribute[:]
    return True


EDITS: Mapping[str, Edit] = {
    "heads are not moved back": _heads_not_moved_back,
    "the scale is dropped": _scale_dropped,
    "the causal mask is lost": _causal_mask_lost,
    "two weights are swapped": _keys_and_values_swapped,
    "a residual is dropped": _residual_dropped,
    "a larger epsilon": _epsilon_larger,
    "the sign of the rotation is lost": _sign_of_rotation_lost,
    "gelu is not approximated": _gelu_exact,
}


def exported(model: nn.Module, how: Export, place: Path) -> Path:
    """The file that an exporter writes."""
    names = ["tokens", "positions"]
    if how.dynamo:
        torch.onnx.export(
            model, inputs(), place, dynamo=True, opset_version=how.opset, optimize=how.is_optimised,
            verbose=False, external_data=False, input_names=names,
        )  # fmt: skip
    else:
        torch.onnx.export(
            model, inputs(), place, dynamo=False, opset_version=how.opset, input_names=names,
            do_constant_folding=how.is_optimised,
        )  # fmt: skip
    return place


def judged(baseline: nn.Module, candidate: Path) -> Mapping[str, object]:
    """The verdict on one file, and what it took."""
    start_s = process_time()
    verdict = scalify.verify((baseline, inputs()), candidate, search=Search(duration_s=SEARCH_S))
    suspect = None if isinstance(verdict, Proved) else verdict.suspect
    return {
        "verdict": type(verdict).__name__,
        "suspect": suspect and f"{suspect.candidate.op} {suspect.candidate.node}",
        "cpu_s": round(process_time() - start_s, 2),
    }


def _built(model: nn.Module) -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    return model, inputs()


def cases(folder: Path) -> Iterator[Mapping[str, object]]:
    """Every export and every edit, judged."""
    for name, make in MODELS.items():
        torch.manual_seed(SEED)
        model = make().eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter)
        save(captured(partial(_built, model), name=name), folder / f"{name}.scg")
        for how in EXPORTS:
            place = exported(model, how, folder / f"{name}, {how.name}.onnx")
            about = {"model": name, "export": how.name}
            yield {**about, "edit": None, **judged(model, place)}
            for edit, change in EDITS.items() if how.name in EDITED else ():
                changed = onnx.load(place)
                if not change(changed):
                    continue
                wrong = folder / f"{name}, {how.name}, {edit}.onnx"
                onnx.save(changed, wrong)
                yield {**about, "edit": edit, **judged(model, wrong)}


def statuses(folder: Path) -> Mapping[str, int]:
    """What ``scalify verify`` leaves with, on an export and on an edited one."""
    right = "Llama, dynamo, opset 18, not optimised"
    names = {"as exported": right, "edited": f"{right}, the scale is dropped"}
    run = [sys.executable, "-m", "scalify", "verify", str(folder / "Llama.scg")]
    return {
        what: subprocess.run(
            [*run, str(folder / f"{name}.onnx")], capture_output=True, check=False
        ).returncode
        for what, name in names.items()
    }


def main() -> None:
    """Run, print and write."""
    warnings.simplefilter("ignore")
    start_s = process_time()
    outcomes: list[Mapping[str, object]] = []
    with TemporaryDirectory() as given:
        folder = Path(given)
        for outcome in cases(folder):
            outcomes.append(outcome)
            print(*outcome.values(), sep=" | ", flush=True)
        left = statuses(folder)
    exports = [found for found in outcomes if found["edit"] is None]
    edits = [found for found in outcomes if found["edit"] is not None]
    unsound = [found for found in edits if found["verdict"] == Proved.__name__]
    figures = {
        "exports": len(exports),
        "exports_proved": sum(found["verdict"] == Proved.__name__ for found in exports),
        "edited": len(edits),
        "edited_refuted": sum(found["verdict"] == "Refuted" for found in edits),
        "unsound": len(unsound),
        "exit_statuses": left,
        "cases": outcomes,
    }
    made_by = {
        "script": "benchmarks/onnx_export.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "seed": SEED,
        "cpu_s": round(process_time() - start_s, 1),
    }
    RESULT.write_text(json.dumps({"made_by": made_by, **figures}, indent=2) + "\n", encoding="utf-8")
    print(*(f"{name}: {value}" for name, value in figures.items() if name != "cases"), sep="\n")
    sys.exit(1 if unsound else 0)


if __name__ == "__main__":
    main()
