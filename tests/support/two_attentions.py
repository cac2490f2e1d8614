"""Two layers of attention, written in steps or as one operator: a pair of profiles to be matched."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

import numpy as np
from graphs import Graph, Ref

from magneton.profile.model import Profile

T, D = 16, 32
HIDDEN = np.triu(np.full((T, T), -np.inf), 1)


def attention(*, fused: bool, seed: int = 1) -> Profile:
    draws, graph = np.random.default_rng(seed), Graph(phase="prefill")
    x = graph.input("x", draws.standard_normal((T, D)))
    mask = None if fused else _mask(graph)
    for layer in range(2):
        graph.module = f"layers.{layer}.attention"
        q, k, v = (
            graph.op("aten.mm", np.matmul, x, graph.parameter(f"layers.{layer}.{name}", _weight(draws)))
            for name in ("q", "k", "v")
        )
        x = graph.op("aten.add", np.add, x, _mixed(graph, q, k, v, mask))
    return graph.profile()


def _weight(draws: np.random.Generator) -> np.ndarray:
    return draws.standard_normal((D, D)) / np.sqrt(D)


def _mask(graph: Graph) -> Ref:
    graph.module = "mask"
    ones = graph.op("aten.ones", lambda: np.ones((T, T)))
    return graph.op("aten.fill", lambda a: np.where(np.triu(a, 1) > 0, -np.inf, 0.0), ones)


def _mixed(graph: Graph, q: Ref, k: Ref, v: Ref, mask: Ref | None) -> Ref:
    if mask is None:
        return graph.op("aten.sdpa", lambda q, k, v: _softmax(_scores(q, k) + HIDDEN) @ v, q, k, v)
    hidden = graph.op("aten.masked", np.add, graph.op("aten.bmm", _scores, q, k), mask)
    return graph.op("aten.mv", np.matmul, graph.op("aten._softmax.default", _softmax, hidden), v)


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.T / np.sqrt(D)


def _softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
