"""Mixtures of experts: each token through two of them, however the tokens reach them."""

import torch
import torch.nn.functional as F
from match_pairs.convention import Pair, Pairs, Program, gain, matrix, normal, seeded, tag
from torch import Generator, Tensor

TOKENS, WIDTH, INNER, EXPERTS, CHOSEN = 48, 64, 80, 6, 2

PAIRS = Pairs()


def expert_weights(g: Generator) -> dict[str, Tensor]:
    return {
        "norm": gain(g, WIDTH),
        "router": matrix(g, EXPERTS, WIDTH),
        "gate_up": matrix(g, EXPERTS, 2 * INNER, WIDTH),
        "down": matrix(g, EXPERTS, WIDTH, INNER),
    }


def routed(m: Program, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Normed tokens [N, D], weights [N, 2] of the experts chosen for each, and their numbers [N, 2]."""
    normed = tag("normed", F.rms_norm(tag("x", x), (WIDTH,), m.norm, 1e-6))
    probs = tag("probs", torch.softmax(tag("router_logits", F.linear(normed, m.router)), -1))
    weights, chosen = torch.topk(probs, CHOSEN, dim=-1)
    return normed, tag("weights", weights / weights.sum(-1, keepdim=True)), chosen


def swiglu(gate_up: Tensor) -> Tensor:
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def looped(m: Program, x: Tensor) -> Tensor:
    """Every expert gathers its tokens, and adds what it makes of them where they belong."""
    normed, weights, chosen = routed(m, x)
    mixed = torch.zeros_like(normed)
    for expert in range(EXPERTS):
        token, place = torch.where(chosen == expert)
        hidden = swiglu(F.linear(normed[token], m.gate_up[expert]))
        mixed.index_add_(0, token, F.linear(hidden, m.down[expert]) * weights[token, place, None])
    return tag("y", x + tag("mixed", mixed))


@PAIRS.add
def moe_looped_vs_dense() -> Pair:
    """Every expert sees its tokens; or all tokens, with a weight of zero where it was not chosen."""
    g = seeded(401)
    ws = expert_weights(g)

    def dense(m: Program, x: Tensor) -> Tensor:
        normed, weights, chosen = routed(m, x)
        spread = torch.zeros(TOKENS, EXPERTS).scatter(1, chosen, weights)
        everywhere = normed.expand(EXPERTS, TOKENS, WIDTH)
        hidden = swiglu(torch.bmm(everywhere, m.gate_up.mT))
        outputs = torch.bmm(hidden, m.down.mT) * spread.t()[:, :, None]
        return tag("y", x + tag("mixed", outputs.sum(0)))

    return {"A": Program(looped, ws), "B": Program(dense, ws), "args": [normal(g, TOKENS, WIDTH)]}


@PAIRS.add
def moe_sorted_vs_gathered() -> Pair:
    """Tokens sorted by expert and cut into segments; or every token gathers its experts' weights."""
    g = seeded(402)
    ws = expert_weights(g)

    def sorted_by_expert(m: Program, x: Tensor) -> Tensor:
        normed, weights, chosen = routed(m, x)
        order = torch.argsort(chosen.flatten(), stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
        segments = normed[order // CHOSEN].split(counts)
        raw = [segment @ m.gate_up[expert].t() for expert, segment in enumerate(segments)]
        hidden = tag("hidden", swiglu(tag("gate_up", torch.cat(raw))))
        down = [segment @ m.down[expert].t() for expert, segment in enumerate(hidden.split(counts))]
        outputs = torch.empty(TOKENS * CHOSEN, WIDTH)
        outputs[order] = tag("outputs", torch.cat(down))
        mixed = (outputs.view(TOKENS, CHOSEN, WIDTH) * weights[:, :, None]).sum(1)
        return tag("y", x + tag("mixed", mixed))

    def gathered(m: Program, x: Tensor) -> Tensor:
        normed, weights, chosen = routed(m, x)
        raw = tag("gate_up", torch.einsum("nd,nkid->nki", normed, m.gate_up[chosen]))
        hidden = tag("hidden", swiglu(raw))
        outputs = tag("outputs", torch.einsum("nki,nkdi->nkd", hidden, m.down[chosen]))
        mixed = tag("mixed", torch.einsum("nk,nkd->nd", weights, outputs))
        return tag("y", x + mixed)

    return {
        "A": Program(sorted_by_expert, ws),
        "B": Program(gathered, ws),
        "args": [normal(g, TOKENS, WIDTH)],
    }


@PAIRS.add
def moe_with_shared_expert() -> Pair:
    """Experts in a loop beside one that sees all tokens; or that one as another row of the weights."""
    g = seeded(403)
    ws = expert_weights(g)
    shared = {"shared_gate_up": matrix(g, 2 * INNER, WIDTH), "shared_down": matrix(g, WIDTH, INNER)}
    joined = {
        "gate_up": torch.cat([ws["gate_up"], shared["shared_gate_up"][None]]),
        "down": torch.cat([ws["down"], shared["shared_down"][None]]),
    }

    def beside(m: Program, x: Tensor) -> Tensor:
        routed_y = looped(m, x)
        normed = F.rms_norm(x, (WIDTH,), m.norm, 1e-6)
        hidden = tag("shared_hidden", swiglu(F.linear(normed, m.shared_gate_up)))
        return tag("z", routed_y + tag("shared", F.linear(hidden, m.shared_down)))

    def as_another(m: Program, x: Tensor) -> Tensor:
        normed, weights, chosen = routed(m, x)
        weights = F.pad(weights, (0, 1), value=1.0)
        chosen = F.pad(chosen, (0, 1), value=EXPERTS)
        spread = torch.zeros(TOKENS, EXPERTS + 1).scatter_(1, chosen, weights)
        hidden = swiglu(torch.einsum("nd,eid->eni", normed, m.gate_up))
        tag("shared_hidden", hidden[EXPERTS])
        outputs = torch.einsum("eni,edi->end", hidden, m.down)
        tag("shared", outputs[EXPERTS])
        return tag("z", x + (outputs * spread.t()[:, :, None]).sum(0))

    return {
        "A": Program(beside, ws | shared),
        "B": Program(as_another, ws | joined),
        "args": [normal(g, TOKENS, WIDTH)],
    }
