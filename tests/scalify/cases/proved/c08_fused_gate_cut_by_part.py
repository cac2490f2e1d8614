"""Control (B40 as it should be): gate rows and up rows are sharded each by itself."""

from dataclasses import replace

from scalify_cases import fused, load_pair, replicated

_wrong = load_pair("unknown/b40_fused_gate_cut_as_one")
_width = _wrong.baseline.inputs()[1].type.shape[0] // 2

PAIR = replace(_wrong, verdict="proved", inputs={"x": replicated, "w": fused(0, _width, _width)})
