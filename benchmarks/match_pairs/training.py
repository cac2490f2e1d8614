"""Steps of training: recomputed activations, accumulated and hand-written gradients, optimisers' updates."""

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    gain,
    matrices,
    matrix,
    merge_heads,
    normal,
    seeded,
    split_heads,
    tag,
)
from torch import Tensor
from torch.optim.adamw import adamw
from torch.utils.checkpoint import checkpoint

BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 4, 16, 64, 4, 120

PAIRS = Pairs()


def trainable(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach().requires_grad_() for tensor in tensors]


@PAIRS.add
def checkpointed_vs_plain_step() -> Pair:
    """Two blocks and a loss; their activations kept for the backward, or computed once more in it."""
    g = seeded(901)
    names = ("norm", "up", "down")
    layers = [
        {"norm": gain(g, WIDTH), "up": matrix(g, 128, WIDTH), "down": matrix(g, WIDTH, 128)} for _ in range(2)
    ]
    ws = {"head": matrix(g, VOCABULARY, WIDTH)}
    x = normal(g, BATCH, LENGTH, WIDTH)
    targets = torch.randint(0, VOCABULARY, (BATCH * LENGTH,), generator=g)

    def block(x: Tensor, norm: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return x + F.linear(F.gelu(F.linear(F.rms_norm(x, (WIDTH,), norm, 1e-6), up)), down)

    def recomputed(x: Tensor, *weights: Tensor) -> Tensor:
        out = checkpoint(block, x, *weights, use_reentrant=False)
        assert isinstance(out, Tensor)
        return out

    def step(run: Callable[..., Tensor]) -> Callable[[Program, Tensor, Tensor], Tensor]:
        def train(m: Program, x: Tensor, targets: Tensor) -> Tensor:
            tag("x", x)
            with torch.enable_grad():
                weights = [trainable([w.norm, w.up, w.down]) for w in m.layers]
                (head,) = trainable([m.head])
                for i, layer in enumerate(weights):
                    x = tag(f"x{i}", run(x, *layer))
                logits = tag("logits", F.linear(x, head))
                loss = tag("loss", F.cross_entropy(logits.flatten(0, 1), targets))
                gradients = torch.autograd.grad(loss, [head, *weights[0], *weights[1]])
            labels = ("head", *(f"{name}{i}" for i in range(2) for name in names))
            for label, gradient in zip(labels, gradients, strict=True):
                tag(f"d_{label}", gradient)
            return gradients[0]

        return train

    return {
        "A": Program(step(block), ws, layers),
        "B": Program(step(recomputed), ws, layers),
        "args": [x, targets],
    }


@PAIRS.add
def gradients_whole_vs_accumulated() -> Pair:
    """One batch, or two halves of it whose gradients are added."""
    g = seeded(902)
    ws = {"w1": matrix(g, 96, WIDTH), "w2": matrix(g, WIDTH, 96)}
    x, targets = normal(g, 64, WIDTH), normal(g, 64, WIDTH)

    def losses(x: Tensor, targets: Tensor, w1: Tensor, w2: Tensor, mark: str) -> Tensor:
        wide = tag(f"wide{mark}", F.linear(x, w1))
        hidden = tag(f"hidden{mark}", F.silu(wide))
        y = tag(f"y{mark}", F.linear(hidden, w2))
        return (y - targets).square().mean()

    def whole(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        tag("x", x)
        with torch.enable_grad():
            w1, w2 = trainable([m.w1, m.w2])
            d1, d2 = torch.autograd.grad(losses(x, targets, w1, w2, ""), [w1, w2])
        tag("d1", d1)
        return tag("d2", d2)

    def accumulated(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        tag("x", x)
        d1, d2 = torch.zeros_like(m.w1), torch.zeros_like(m.w2)
        for part, (rows, wanted) in enumerate(zip(x.chunk(2), targets.chunk(2), strict=True)):
            with torch.enable_grad():
                w1, w2 = trainable([m.w1, m.w2])
                loss = losses(rows, wanted, w1, w2, str(part)) / 2
                new1, new2 = torch.autograd.grad(loss, [w1, w2])
            d1.add_(new1)
            d2.add_(new2)
        tag("d1", d1)
        return tag("d2", d2)

    return {
        "A": Program(whole, ws),
        "B": Program(accumulated, ws),
        "args": [x, targets],
        "parts": {name: [f"{name}0", f"{name}1"] for name in ("wide", "hidden", "y")},
    }


@PAIRS.add
def backward_by_autograd_vs_by_hand() -> Pair:
    """A hidden layer and a softmax loss; gradients asked for, or written down."""
    g = seeded(903)
    ws = {"w1": matrix(g, 96, WIDTH), "w2": matrix(g, VOCABULARY, 96)}
    x = normal(g, 80, WIDTH)
    targets = torch.randint(0, VOCABULARY, (80,), generator=g)

    def asked_for(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        tag("x", x)
        with torch.enable_grad():
            x, w1, w2 = trainable([x, m.w1, m.w2])
            wide = tag("wide", F.linear(x, w1))
            hidden = tag("hidden", torch.tanh(wide))
            logits = tag("logits", F.linear(hidden, w2))
            loss = tag("loss", F.cross_entropy(logits, targets))
            gradients = torch.autograd.grad(loss, [logits, hidden, w2, w1, x])
        for name, gradient in zip(("d_logits", "d_hidden", "d_w2", "d_w1", "d_x"), gradients, strict=True):
            tag(name, gradient)
        return gradients[-1]

    def written(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        wide = tag("wide", tag("x", x) @ m.w1.t())
        hidden = tag("hidden", torch.tanh(wide))
        logits = tag("logits", hidden @ m.w2.t())
        logp = torch.log_softmax(logits, -1)
        rows = torch.arange(len(targets))
        tag("loss", -logp[rows, targets].mean())
        d_logits = logp.exp()
        d_logits[rows, targets] -= 1.0
        d_logits = tag("d_logits", d_logits.div_(len(targets)))
        d_hidden = tag("d_hidden", d_logits @ m.w2)
        tag("d_w2", d_logits.t() @ hidden)
        d_wide = d_hidden * (1 - hidden * hidden)
        tag("d_w1", d_wide.t() @ x)
        return tag("d_x", d_wide @ m.w1)

    return {"A": Program(asked_for, ws), "B": Program(written, ws), "args": [x, targets]}


@PAIRS.add
def attention_step_eager_vs_fused() -> Pair:
    """Forward and backward of two causal attention layers: by matmul and softmax, or by one operator."""
    g = seeded(904)
    layers = [matrices(g, "wq wk wv wo", WIDTH, WIDTH) | {"norm": gain(g, WIDTH)} for _ in range(2)]

    def eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) / sqrt(WIDTH // HEADS)
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        return torch.softmax(scores.masked_fill(future, torch.finfo(scores.dtype).min), -1) @ v

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def step(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
        def train(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            with torch.enable_grad():
                weights = [trainable([w.wq, w.wk, w.wv, w.wo, w.norm]) for w in m.layers]
                for i, (wq, wk, wv, wo, norm) in enumerate(weights):
                    normed = tag(f"normed{i}", F.rms_norm(x, (WIDTH,), norm, 1e-6))
                    q, k, v = (split_heads(F.linear(normed, w), HEADS) for w in (wq, wk, wv))
                    context = tag(f"context{i}", attend(q, k, v))
                    x = tag(f"x{i}", x + F.linear(merge_heads(context), wo))
                loss = tag("loss", x.square().mean())
                gradients = torch.autograd.grad(loss, [*weights[0], *weights[1]])
            labels = (f"d_{name}{i}" for i in range(2) for name in ("q", "k", "v", "o", "norm"))
            for label, gradient in zip(labels, gradients, strict=True):
                tag(label, gradient)
            return gradients[0]

        return train

    return {
        "A": Program(step(eager), {}, layers),
        "B": Program(step(fused), {}, layers),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


RATE, DECAY, FIRST, SECOND, EPSILON, UPDATES = 1e-1, 0.1, 0.9, 0.99, 1e-8, 3
SHAPES = ((64, 48), (80, 32), (40, 40))
KINDS = ("updated", "mean", "square")


def adamw_by_hand(m: Program, *gradients: Tensor) -> Tensor:
    """One weight at a time, nothing in place."""
    updated = m.updated0
    for i, gradient in enumerate(gradients):
        w, mean, square = (getattr(m, f"{kind}{i}") for kind in KINDS)
        mean = tag(f"mean{i}", FIRST * mean + (1 - FIRST) * tag(f"gradient{i}", gradient))
        square = tag(f"square{i}", SECOND * square + (1 - SECOND) * gradient**2)
        step = (mean / (1 - FIRST**UPDATES)) / (torch.sqrt(square / (1 - SECOND**UPDATES)) + EPSILON)
        updated = tag(f"updated{i}", w - RATE * DECAY * w - RATE * step)
    return updated


def adamw_of_torch(m: Program, *gradients: Tensor, fused: bool) -> Tensor:
    """All weights at once and in place: by a few operators over lists, or by one."""
    state = [[getattr(m, f"{kind}{i}").clone() for i in range(len(SHAPES))] for kind in KINDS]
    adamw(
        state[0],
        [tag(f"gradient{i}", gradient) for i, gradient in enumerate(gradients)],
        state[1],
        state[2],
        [],
        [torch.tensor(float(UPDATES - 1)) for _ in SHAPES],
        foreach=not fused,
        fused=fused,
        amsgrad=False,
        beta1=FIRST,
        beta2=SECOND,
        lr=RATE,
        weight_decay=DECAY,
        eps=EPSILON,
        maximize=False,
    )
    for kind, tensors in zip(KINDS, state, strict=True):
        for i, tensor in enumerate(tensors):
            tag(f"{kind}{i}", tensor)
    return state[0][-1]


def adamw_weights(seed: int) -> tuple[dict[str, Tensor], list[Tensor]]:
    """State before the third update, and its gradients."""
    g = seeded(seed)
    ws = {f"updated{i}": normal(g, *shape) for i, shape in enumerate(SHAPES)}
    ws |= {f"mean{i}": normal(g, *shape) * 0.3 for i, shape in enumerate(SHAPES)}
    ws |= {f"square{i}": normal(g, *shape).square() * 0.2 for i, shape in enumerate(SHAPES)}
    return ws, [normal(g, *shape) for shape in SHAPES]


@PAIRS.add
def adamw_by_hand_vs_foreach() -> Pair:
    ws, gradients = adamw_weights(905)
    foreach = partial(adamw_of_torch, fused=False)
    return {"A": Program(adamw_by_hand, ws), "B": Program(foreach, ws), "args": gradients}


@PAIRS.add
def adamw_foreach_vs_fused() -> Pair:
    ws, gradients = adamw_weights(906)
    foreach, fused = partial(adamw_of_torch, fused=False), partial(adamw_of_torch, fused=True)
    return {"A": Program(foreach, ws), "B": Program(fused, ws), "args": gradients}
