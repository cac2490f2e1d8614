"""How well do sketches tell tensors apart, and what do they cost? Prints the tables of docs/decisions/0002.

python benchmarks/sketches.py

One thread; costs are CPU seconds, median of 11 interleaved repetitions.
"""

import math
import time
from collections.abc import Callable, Mapping

import torch
from torch import Generator, Tensor

from magneton.profile.sketches import FREQUENCIES, Sketch
from magneton.record.torch.sketching import sketch_tensor

FAMILIES: Mapping[str, Callable[[Tensor, Generator], Tensor]] = {
    "normal": lambda x, g: x,
    "uniform": lambda x, g: torch.rand(x.numel(), generator=g),
    "relu": lambda x, g: x.relu(),
    "softmax": lambda x, g: (x * 2).softmax(0) * x.numel(),
    "heavy": lambda x, g: x * torch.randn(x.numel(), generator=g).exp(),
    "tiny": lambda x, g: x * 1e-4,
}
NOISE = (1e-6, 1e-5, 1e-4, 1e-3)
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
DRAWS = 10


def sketched(tensor: Tensor) -> Sketch:
    sketch = sketch_tensor(tensor)
    assert sketch is not None
    return sketch


def threshold(count: int) -> float:
    return min(2e-3, max(5e-5, 0.1 / math.sqrt(count)))


def feature_distance(one: Sketch, other: Sketch) -> float:
    """The largest difference of the complex mean feature over shared frequencies."""
    shift = other.first - one.first
    shared = range(max(0, shift), min(FREQUENCIES, FREQUENCIES + shift))
    gaps = [0.0]
    for i in shared:
        cosine = one.cos_sum[i] / one.count - other.cos_sum[i - shift] / other.count
        sine = one.sin_sum[i] / one.count - other.sin_sum[i - shift] / other.count
        gaps.append(math.hypot(cosine, sine))
    return max(gaps) if len(shared) else math.inf


def rms_distance(one: Sketch, other: Sketch) -> float:
    return abs(one.rms - other.rms) / max(one.rms, other.rms)


def discriminate(count: int, generator: Generator) -> None:
    """One row per kind of pair: the extreme distances as multiples of the threshold."""
    gaps: dict[str, list[tuple[float, float]]] = {}
    for make in FAMILIES.values():
        for _ in range(DRAWS):
            tensor = make(torch.randn(count, generator=generator), generator)
            independent = make(torch.randn(count, generator=generator), generator)
            rms = float(tensor.square().mean().sqrt())
            others = {"independent": independent, "bf16": tensor.bfloat16(), "fp16": tensor.half()}
            for level in NOISE:
                others[f"noise {level:g}"] = tensor + rms * level * torch.randn(count, generator=generator)
            for kind, other in others.items():
                pair = sketched(tensor), sketched(other)
                gaps.setdefault(kind, []).append((feature_distance(*pair), rms_distance(*pair)))
    limit = threshold(count)
    for kind, pairs in gaps.items():
        pick = min if kind == "independent" else max
        feature, either = pick(f for f, _ in pairs), pick(max(pair) for pair in pairs)
        print(f"{count:>9} {kind:<12} features {feature / limit:9.4f}  features or rms {either / limit:9.4f}")


def cost() -> None:
    x = torch.randn(2048, 2048)
    known, masked = sketched(x), x.clone()
    masked[0] = -math.inf
    half, wide = x.bfloat16(), x.double()
    steps: dict[str, tuple[int, Callable[[], object]]] = {
        "x.sin().sum()": (x.numel(), lambda: x.sin().sum()),
        "float32": (x.numel(), lambda: sketch_tensor(x)),
        "bfloat16": (x.numel(), lambda: sketch_tensor(half)),
        "float64": (x.numel(), lambda: sketch_tensor(wide)),
        "transposed": (x.numel(), lambda: sketch_tensor(x.T)),
        "transposed, rest known": (x.numel(), lambda: sketch_tensor(x.T, rearranged_from=known)),
        "with -inf": (x.numel(), lambda: sketch_tensor(masked)),
    }
    for small in (torch.randn(count) for count in (16, 256, 1024, 4096, 16384, 65536)):
        steps[f"{small.numel()} elements"] = (small.numel(), lambda t=small: sketch_tensor(t))
    for name, seconds in medians({name: step for name, (_, step) in steps.items()}).items():
        print(f"{name:<24} {seconds / steps[name][0] * 1e9:10.2f} ns/element {seconds * 1e6:12.1f} us")


def medians(steps: Mapping[str, Callable[[], object]], repetitions: int = 11) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repetitions + 1):
        for name, step in steps.items():
            start = time.process_time()
            step()
            spent[name].append(time.process_time() - start)
    return {name: sorted(times[1:])[repetitions // 2] for name, times in spent.items()}


def main() -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print("smallest distance of independent pairs, largest of equal ones, in units of the threshold")
    for count in COUNTS:
        discriminate(count, generator)
    cost()


if __name__ == "__main__":
    main()
