"""Does a value's drift under noise tell how far low precision really moves it, and what does matching gain?

    python benchmarks/drift.py [--layers 8] [--hidden 256] [--tokens 128]

A Llama of Transformers in bfloat16 and in float16 against the same one in float32, eager attention: for every
value of the low-precision side its drift (rounded otherwise, from itself) and its actual distance from the
float32 side, as multiples of the fixed threshold; then the share of operators that matching pairs in
regions, and how many regions there are, with drift and without. Written to benchmarks/results/drift.json.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import transformers
from results import write_result

from magneton.match import match
from magneton.match.distance import drifts, threshold
from magneton.match.model import Matching
from magneton.profile.distance import distances
from magneton.profile.model import Profile
from magneton.record.torch.capture import trace_callable


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=128)
    asked = parser.parse_args()
    torch.set_num_threads(1)

    def model(dtype: torch.dtype) -> Callable[..., object]:
        torch.manual_seed(0)
        library: Any = transformers  # its classes are typed for other versions
        config = library.LlamaConfig(
            hidden_size=asked.hidden,
            intermediate_size=2 * asked.hidden,
            num_hidden_layers=asked.layers,
            num_attention_heads=8,
            num_key_value_heads=4,
            vocab_size=499,
            attn_implementation="eager",
        )
        return library.LlamaForCausalLM(config).eval().to(dtype)

    ids = torch.arange(asked.tokens).reshape(1, -1) * 7 % 499
    with torch.no_grad():
        exact = trace_callable(model(torch.float32), (ids,), with_drift=True)
        low = {
            str(dtype).removeprefix("torch."): trace_callable(model(dtype), (ids,), with_drift=True)
            for dtype in (torch.bfloat16, torch.float16)
        }
    figures = {name: judged(profile, exact) for name, profile in low.items()}
    print(json.dumps(figures, indent=2))
    print(f"written to {write_result('drift', figures, exact.origin).name}")


def judged(low: Profile, exact: Profile) -> dict[str, float | int]:
    """Values are found on the other side by their place: both run the same operators but for casts."""
    rows_x, rows_y = corresponding(low, exact)
    actual = distances(low.sketches, rows_x, exact.sketches, rows_y)
    known = np.isfinite(actual) & (drifts(low)[rows_x] > 0)
    actual, drift = actual[known], drifts(low)[rows_x][known]
    limit = threshold(low.sketches.count[rows_x[known]])
    far = actual > limit
    ratio = actual[far] / drift[far]
    return {
        "values": len(actual),
        "beyond_threshold": int(far.sum()),
        "worst_distance": round(float(actual.max()), 5),
        "actual_over_drift_median": round(float(np.median(ratio)), 3) if len(ratio) else 0.0,
        "actual_over_drift_worst": round(float(ratio.max()), 3) if len(ratio) else 0.0,
        "regions_with_drift": len(match(low, exact).regions),
        "regions_without": len(match(without_drift(low), without_drift(exact)).regions),
        "unpaired_with_drift": unpaired(match(low, exact)),
        "unpaired_without": unpaired(match(without_drift(low), without_drift(exact))),
    }


def corresponding(low: Profile, exact: Profile) -> tuple[np.ndarray, np.ndarray]:
    ops_x, ops_y = (
        [op for op in profile.operators if not op.name.startswith("aten._to_copy")]
        for profile in (low, exact)
    )
    pairs = [
        (x, y)
        for one, other in zip(ops_x, ops_y, strict=True)
        for x, y in zip(one.outputs, other.outputs, strict=True)
        if low.sketches.known[x] and exact.sketches.known[y]
    ]
    rows_x, rows_y = np.array(pairs, dtype=np.int64).T
    return rows_x, rows_y


def without_drift(profile: Profile) -> Profile:
    return replace(profile, values=tuple(replace(value, drift=None) for value in profile.values))


def unpaired(matching: Matching) -> int:
    return len(matching.only_baseline) + len(matching.only_candidate)


if __name__ == "__main__":
    main()
