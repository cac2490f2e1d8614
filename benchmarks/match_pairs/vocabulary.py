"""From tokens and back to tokens: embeddings, tied heads, losses over the vocabulary, and sampling."""

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    MINUS_INFINITY,
    Pair,
    Pairs,
    Program,
    layer_norm_by_hand,
    matrix,
    norm_weights,
    normal,
    offset,
    seeded,
    tag,
)
from torch import Tensor

BATCH, LENGTH, WIDTH, VOCABULARY = 2, 24, 64, 160

PAIRS = Pairs()


@PAIRS.add
def embedding_vs_one_hot() -> Pair:
    """Rows looked up, and a head tied to their table; or a one-hot product, and a transposed copy."""
    g = seeded(601)
    table = normal(g, VOCABULARY, WIDTH) * 0.5
    ws = norm_weights(g, "norm", "final", width=WIDTH) | {"positions": normal(g, 40, WIDTH) * 0.2}
    ws |= {"up": matrix(g, 128, WIDTH), "down": matrix(g, WIDTH, 128), "table": table}
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=g)

    def mlp(m: Program, normed: Tensor) -> Tensor:
        return F.linear(tag("hidden", F.gelu(F.linear(tag("normed", normed), m.up))), m.down)

    def looked_up(m: Program, tokens: Tensor) -> Tensor:
        x = tag("tokens", F.embedding(tokens, m.table))
        x = tag("x", x + tag("places", F.embedding(torch.arange(LENGTH), m.positions)))
        x = tag("y", x + mlp(m, F.layer_norm(x, (WIDTH,), m.norm_gain, m.norm_offset)))
        final = tag("final", F.layer_norm(x, (WIDTH,), m.final_gain, m.final_offset))
        return tag("logits", F.linear(final, m.table))

    def multiplied(m: Program, tokens: Tensor) -> Tensor:
        x = tag("tokens", F.one_hot(tokens, VOCABULARY).to(m.table.dtype) @ m.table)
        x = tag("x", x + tag("places", m.positions[:LENGTH]))
        x = tag("y", x + mlp(m, layer_norm_by_hand(x, m.norm_gain, m.norm_offset)))
        final = tag("final", layer_norm_by_hand(x, m.final_gain, m.final_offset))
        return tag("logits", torch.matmul(final, m.head))

    return {
        "A": Program(looked_up, ws),
        "B": Program(multiplied, ws | {"head": table.t().contiguous()}),
        "args": [tokens],
    }


@PAIRS.add
def cross_entropy_whole_vs_chunked() -> Pair:
    """Logits of the whole vocabulary; or a quarter of it at a time, with a running logsumexp."""
    g = seeded(602)
    parts = 4
    size = VOCABULARY // parts
    ws = {"up": matrix(g, WIDTH, WIDTH), "head": matrix(g, VOCABULARY, WIDTH) * 2}
    x = normal(g, 1200, WIDTH)
    targets = torch.randint(0, VOCABULARY, (1200,), generator=g)

    def whole(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        hidden = tag("hidden", torch.tanh(F.linear(tag("x", x), m.up)))
        logits = tag("logits", F.linear(hidden, m.head))
        losses = tag("losses", F.cross_entropy(logits, targets, reduction="none"))
        return tag("loss", losses.mean())

    def chunked(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        hidden = tag("hidden", torch.tanh(F.linear(tag("x", x), m.up)))
        total = torch.full(targets.shape, MINUS_INFINITY)
        mine = torch.zeros(targets.shape)
        for part, weight in enumerate(m.head.split(size)):
            logits = tag(f"logits{part}", hidden @ weight.t())
            total = torch.logaddexp(total, torch.logsumexp(logits, -1))
            place = targets - part * size
            here = (place >= 0) & (place < size)
            found = logits.gather(1, place.clamp(0, size - 1)[:, None]).squeeze(1)
            mine = torch.where(here, found, mine)
        losses = tag("losses", tag("total", total) - tag("mine", mine))
        return tag("loss", losses.sum() / losses.numel())

    return {
        "A": Program(whole, ws),
        "B": Program(chunked, ws),
        "args": [x, targets],
        "parts": {"logits": [f"logits{part}" for part in range(parts)]},
    }


@PAIRS.add
def smoothed_loss_fused_vs_by_hand() -> Pair:
    """Label smoothing, ignored targets and a penalty on the logits' normaliser."""
    g = seeded(603)
    ws = {"head": matrix(g, VOCABULARY, WIDTH), "bias": offset(g, VOCABULARY)}
    x = normal(g, 300, WIDTH)
    targets = torch.randint(0, VOCABULARY, (300,), generator=g)
    targets[::7] = -100
    smoothing = 0.1

    def fused(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        logits = tag("logits", F.linear(tag("x", x), m.head, m.bias))
        loss = tag("loss", F.cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=-100))
        penalty = tag("penalty", torch.logsumexp(logits, -1).square().mean())
        return tag("objective", loss + 1e-2 * penalty)

    def by_hand(m: Program, x: Tensor, targets: Tensor) -> Tensor:
        logits = tag("logits", torch.addmm(m.bias, tag("x", x), m.head.t()))
        normaliser = tag("normaliser", logits.exp().sum(-1, keepdim=True).log())
        logp = tag("logp", logits - normaliser)
        kept = targets != -100
        truth = torch.zeros_like(logp).scatter(1, targets.clamp(min=0)[:, None], 1.0)
        wanted = truth * (1 - smoothing) + smoothing / VOCABULARY
        loss = tag("loss", -(wanted * logp).sum(-1)[kept].sum() / kept.sum())
        penalty = tag("penalty", normaliser.pow(2).mean())
        return tag("objective", loss + 1e-2 * penalty)

    return {"A": Program(fused, ws), "B": Program(by_hand, ws), "args": [x, targets]}


@PAIRS.add
def nucleus_by_scatter_vs_threshold() -> Pair:
    """Top-k, then top-p: what falls out is scattered back from sorted order, or found by a threshold."""
    g = seeded(604)
    k, share = 40, 0.9
    ws = {"head": matrix(g, VOCABULARY, WIDTH) * 3}

    def by_scatter(m: Program, x: Tensor) -> Tensor:
        logits = tag("logits", F.linear(tag("x", x), m.head) / 0.8)
        lowest = torch.topk(logits, k).values[:, -1:]
        logits = tag("top_k", logits.masked_fill(logits < lowest, MINUS_INFINITY))
        descending, order = torch.sort(logits, descending=True)
        mass = descending.softmax(-1).cumsum(-1)
        out = torch.zeros_like(mass, dtype=torch.bool)
        out[:, 1:] = mass[:, :-1] > share
        out = torch.zeros_like(out).scatter(1, order, out)
        return tag("probs", torch.softmax(tag("top_p", logits.masked_fill(out, MINUS_INFINITY)), -1))

    def by_threshold(m: Program, x: Tensor) -> Tensor:
        logits = tag("logits", F.linear(tag("x", x), m.head).div_(0.8))
        descending = logits.sort(-1, descending=True).values
        lowest = descending[:, k - 1 : k]
        logits = tag("top_k", torch.where(logits >= lowest, logits, MINUS_INFINITY))
        probs = descending[:, :k].softmax(-1)
        kept = (probs.cumsum(-1) - probs <= share).sum(-1, keepdim=True)
        least = descending.gather(1, kept - 1)
        logits = tag("top_p", torch.where(logits >= least, logits, MINUS_INFINITY))
        raised = torch.exp(logits - logits.amax(-1, keepdim=True))
        return tag("probs", raised / raised.sum(-1, keepdim=True))

    return {"A": Program(by_scatter, ws), "B": Program(by_threshold, ws), "args": [normal(g, 48, WIDTH)]}
