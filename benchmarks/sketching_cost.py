"""What sketching adds to the dataflow pass: Llama of hidden size 1024, four layers, a static cache in place.

    python benchmarks/sketching_cost.py [--rounds 5] [--attention sdpa eager]

A pass is what a recording traces: a prefill of 128 tokens, then a decode step of four tokens, with one
recorder, so that parameters are sketched once. It is run in three ways, in turns: *plain* (nothing attached),
*recorded* (the uninstrumented dataflow pass: operators, values, versions, stacks, counts, but a sketcher that
gives nothing) and *sketched*. Figures are CPU-seconds of one thread, medians. *Extra* is sketched minus
recorded, over recorded, the median of the rounds: goal at most 2. *Again* traces both a second time, with
everything known that lasts: what a longer recording adds.

The cache has 2048 positions and is written by ``index_copy_`` on the whole of it. Counted, in a decode step:
looks at a cache tensor (one for each arrangement in which it is read: what a step finds in memory is sketched
when it is first read) and patches, which look at nothing but what a write exchanged. A look per write would
be a full pass over the cache. Writes benchmarks/results/sketching_cost.json.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
from results import write_result
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

from magneton.profile.sketches import Sketch
from magneton.record.torch.capture import trace_callable
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.patches import PatchOf, patch_sketch
from magneton.record.torch.sketching import CAP, SketchOf, sketch_tensor
from magneton.record.torch.storage import Change
from magneton.workload import DECODE, PREFILL, Phase

LAYERS, PROMPT, TOKENS, POSITIONS = 4, 128, 4, 2048
HIDDEN, HEADS, VOCABULARY = 1024, 16, 4096
GOAL_EXTRA = 2.0
PARTS: Mapping[str, Phase] = {
    "prefill": PREFILL,
    "decode": DECODE,
    "prefill again": PREFILL,
    "decode again": DECODE,
}
PASSES = {"pass": ("prefill", "decode"), "again": ("prefill again", "decode again")}
WAYS = ("plain", "recorded", "sketched")

Spent = dict[str, float]


class Step:
    """A model with its cache, run as a system runs it."""

    def __init__(self, attention: str) -> None:
        torch.manual_seed(0)
        config = LlamaConfig(
            hidden_size=HIDDEN,
            intermediate_size=2816,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS,
            vocab_size=VOCABULARY,
            max_position_embeddings=POSITIONS,
        )
        self.model = LlamaForCausalLM(config).eval()
        self.model.set_attn_implementation(attention)
        self.prompt = torch.randint(0, VOCABULARY, (1, PROMPT))
        self.tokens = torch.randint(0, VOCABULARY, (TOKENS, 1, 1))
        self.cache = StaticCache(config=config, max_cache_len=POSITIONS)
        self.run(PREFILL)
        self.run(DECODE)

    def memory(self) -> frozenset[int]:
        """The addresses of the cache's tensors."""
        tensors: list[Tensor] = [getattr(x, name) for x in self.cache.layers for name in ("keys", "values")]
        return frozenset(tensor.data_ptr() for tensor in tensors)

    def rewind(self, phase: Phase) -> None:
        """Empty the cache, or leave in it what the prefill writes."""
        self.cache.reset()
        if phase == DECODE:
            self.run(PREFILL)

    def run(self, phase: Phase) -> None:
        with torch.no_grad():
            for ids in (self.prompt,) if phase == PREFILL else self.tokens:
                self.model(input_ids=ids, past_key_values=self.cache, use_cache=True)

    def roots(self) -> Mapping[str, Any]:
        return {"": self.model, "input": {"prompt": self.prompt, "tokens": self.tokens}}


@dataclass
class Count:
    """How much of a cache sketches and patches looked at."""

    memory: frozenset[int]
    looked: list[int] = field(default_factory=list[int])  # elements, of each look that is no patch
    patched: list[int] = field(default_factory=list[int])  # elements exchanged, by each patch

    def sketch(
        self, tensor: Tensor, *, cap: int = CAP, rearranged_from: Sketch | None = None
    ) -> Sketch | None:
        if tensor.untyped_storage().data_ptr() in self.memory:
            self.looked.append(tensor.numel())
        return sketch_tensor(tensor, cap=cap, rearranged_from=rearranged_from)

    def patch(self, known: Sketch, tensor: Tensor, changes: Sequence[Change]) -> Sketch | None:
        patched = patch_sketch(known, tensor, changes)
        if patched is not None:
            self.patched.append(sum(change.offsets.size for change in changes))
        return patched


def no_sketch(tensor: Tensor, *, cap: int = CAP, rearranged_from: Sketch | None = None) -> Sketch | None:
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--attention", nargs="+", default=["sdpa", "eager"])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, object] = {}
    for attention in asked.attention:
        step = Step(attention)
        spent = timed(step, asked.rounds)
        seconds = {way: medians(found) for way, found in spent.items()}
        figures[attention] = {"cpu_s": seconds, "extra": extra(spent), "cache": counted(step)}
        show(attention, seconds, extra(spent), counted(step))
    profile = trace_callable(torch.relu, (torch.ones(3),))
    place = write_result("sketching_cost", {"goal_extra": GOAL_EXTRA, "attention": figures}, profile.origin)
    print(f"written to {place.name}")


def timed(step: Step, rounds: int) -> dict[str, list[Spent]]:
    """CPU-seconds by way, round and part; the ways take turns."""
    ways: Mapping[str, Callable[[], Spent]] = {
        "plain": lambda: {part: _cpu_s(step, p, lambda p=p: step.run(p)) for part, p in PARTS.items()},
        "recorded": lambda: recorded(step, no_sketch, None),
        "sketched": lambda: recorded(step, sketch_tensor, patch_sketch),
    }
    spent: dict[str, list[Spent]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            spent[way].append(ways[way]())
    return spent


def recorded(step: Step, sketch: SketchOf, patch: PatchOf | None) -> Spent:
    recorder = Recorder(sketch=sketch, patch=patch)

    def trace(phase: Phase) -> None:
        with recorder.phase(phase, step.roots()):
            step.run(phase)

    return {part: _cpu_s(step, phase, lambda p=phase: trace(p)) for part, phase in PARTS.items()}


def _cpu_s(step: Step, phase: Phase, work: Callable[[], None]) -> float:
    step.rewind(phase)
    start = time.process_time()
    work()
    return time.process_time() - start


def medians(rounds: Sequence[Spent]) -> Spent:
    return {part: round(median(one[part] for one in rounds), 4) for part in PARTS}


def extra(spent: Mapping[str, Sequence[Spent]]) -> dict[str, float]:
    """What sketching adds, over the pass without: of passes and parts. A round's pair is compared."""
    pairs = list(zip(spent["recorded"], spent["sketched"], strict=True))
    groups = {**PASSES, **{part: (part,) for part in PARTS}}
    return {
        name: round(
            median(sum(more[p] for p in parts) / sum(less[p] for p in parts) - 1 for less, more in pairs), 3
        )
        for name, parts in groups.items()
    }


def counted(step: Step) -> dict[str, int]:
    """Of a decode step: how much of a cache tensor its first sketch and each write make us look at."""
    count = Count(step.memory())
    recorder = Recorder(sketch=count.sketch, patch=count.patch)
    step.rewind(DECODE)
    with recorder.phase(DECODE, step.roots()):
        step.run(DECODE)
    return {
        "writes": 2 * LAYERS * TOKENS,
        "elements_written_by_each": HIDDEN,
        "patches": len(count.patched),
        "elements_of_largest_patch": max(count.patched, default=0),
        "looks": len(count.looked),
        "tensors": 2 * LAYERS,
        "elements_of_each": POSITIONS * HIDDEN,
    }


def show(
    attention: str, seconds: Mapping[str, Spent], shares: Mapping[str, float], cache: Mapping[str, int]
) -> None:
    print(f"{attention:<10} CPU-s of   plain  recorded  sketched     extra  sketched/plain")
    for part in PARTS:
        plain_s, recorded_s, sketched_s = (seconds[way][part] for way in WAYS)
        print(
            f"  {part:<15} {plain_s:>9.3f} {recorded_s:>9.3f} {sketched_s:>9.3f} {shares[part]:>8.2f}x"
            f" {sketched_s / plain_s:>14.1f}x"
        )
    verdict = "met" if shares["pass"] <= GOAL_EXTRA else "MISSED"
    print(
        f"  sketching adds {shares['pass']:.2f}x the recorded pass, {shares['again']:.2f}x the second time; "
        f"goal at most {GOAL_EXTRA:g}: {verdict}"
    )
    print(
        f"  decode: {cache['writes']} writes of {cache['elements_written_by_each']} elements into "
        f"{cache['tensors']} cache tensors of {cache['elements_of_each']}: {cache['looks']} looks, "
        f"{cache['patches']} patches of at most {cache['elements_of_largest_patch']} elements"
    )


if __name__ == "__main__":
    main()
