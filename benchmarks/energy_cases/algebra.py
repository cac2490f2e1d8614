"""The same mathematics by a costlier road: order of products, materialised differences, general solvers."""

import torch
import torch.nn.functional as F
from planting import WIDTH, Planted, Step, beside, matrix, normal, within
from torch import Tensor

RANK = 4


def contracted(m: Planted, x: Tensor) -> Tensor:
    """One einsum over a chain whose last factor is narrow; without a path search it goes from the left."""
    return torch.einsum("ij,jk,kl,lm->im", x[0], m.one, m.two, m.thin)


def chain() -> dict[str, Tensor]:
    return {"one": matrix(WIDTH, 768, 71), "two": matrix(768, 768, 72), "thin": matrix(768, RANK, 73)}


def unordered_einsum_wasteful() -> Step:
    torch.backends.opt_einsum.enabled = False
    return beside(Planted(contracted, **chain()))


def unordered_einsum_lean() -> Step:
    torch.backends.opt_einsum.enabled = True
    return beside(Planted(contracted, **chain()))


def delta_first(m: Planted, x: Tensor) -> Tensor:
    """A low-rank correction as one large matrix, made again at each call."""
    return x @ (m.rise @ m.fall).T  # <- materialised_delta


def ranks_first(m: Planted, x: Tensor) -> Tensor:
    return (x @ m.fall.T) @ m.rise.T


def low_rank() -> dict[str, Tensor]:
    return {"rise": matrix(4096, RANK, 74), "fall": matrix(RANK, WIDTH, 75)}


def materialised_delta_wasteful() -> Step:
    return beside(Planted(delta_first, **low_rank()))


def materialised_delta_lean() -> Step:
    return beside(Planted(ranks_first, **low_rank()))


def scaled_anew(m: Planted, x: Tensor) -> Tensor:
    """A linear whose rows are scaled by the norm of its corrected weight, which never changes."""
    identity = torch.eye(WIDTH)
    corrected = m.weight + F.linear(F.linear(identity, m.fall), m.rise).T  # <- norm_each_call
    scale = m.magnitude / corrected.norm(dim=1)  # <- norm_each_call
    return F.linear(x[:, -8:], m.weight) * scale


def scaled_once(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x[:, -8:], m.weight) * m.scale


def adapted() -> dict[str, Tensor]:
    rows = 4096
    weight, rise, fall = matrix(rows, WIDTH, 76), matrix(rows, RANK, 77), matrix(RANK, WIDTH, 78)
    magnitude = 1 + 0.1 * normal(rows, seed=79)
    scale = magnitude / (weight + (fall.T @ rise.T).T).norm(dim=1)
    return {"weight": weight, "rise": rise, "fall": fall, "magnitude": magnitude, "scale": scale}


def norm_each_call_wasteful() -> Step:
    return beside(Planted(scaled_anew, **adapted()))


def norm_each_call_lean() -> Step:
    return beside(Planted(scaled_once, **adapted()))


def normed_weight(m: Planted, x: Tensor) -> Tensor:
    weight = m.gain[:, None] * m.direction / m.direction.norm(dim=1, keepdim=True)  # <- weight_norm_each_call
    return F.linear(x[:, -8:], weight)


def folded_weight(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x[:, -8:], m.folded)


def parametrised() -> dict[str, Tensor]:
    direction, gain = normal(4096, WIDTH, seed=80), 1 + 0.1 * normal(4096, seed=81)
    folded = gain[:, None] * direction / direction.norm(dim=1, keepdim=True)
    return {"direction": direction, "gain": gain, "folded": folded}


def weight_norm_each_call_wasteful() -> Step:
    return beside(Planted(normed_weight, **parametrised()))


def weight_norm_each_call_lean() -> Step:
    return beside(Planted(folded_weight, **parametrised()))


def alike_by_broadcast(m: Planted, x: Tensor) -> Tensor:
    return F.cosine_similarity(x[0][:, None], m.others, dim=-1)  # <- broadcast_cosine


def alike_by_product(m: Planted, x: Tensor) -> Tensor:
    return F.normalize(x[0], dim=-1) @ F.normalize(m.others, dim=-1).T


def broadcast_cosine_wasteful() -> Step:
    return beside(Planted(alike_by_broadcast, others=normal(64, WIDTH, seed=82)))


def broadcast_cosine_lean() -> Step:
    return beside(Planted(alike_by_product, others=normal(64, WIDTH, seed=82)))


def apart_by_broadcast(m: Planted, x: Tensor) -> Tensor:
    return (x[0][:, None] - m.others).pow(2).sum(-1)  # <- broadcast_distances


def apart_by_product(m: Planted, x: Tensor) -> Tensor:
    squares = x[0].pow(2).sum(-1, keepdim=True) + m.others.pow(2).sum(-1)
    return squares - 2 * (x[0] @ m.others.T)


def broadcast_distances_wasteful() -> Step:
    return beside(Planted(apart_by_broadcast, others=normal(64, WIDTH, seed=83)))


def broadcast_distances_lean() -> Step:
    return beside(Planted(apart_by_product, others=normal(64, WIDTH, seed=83)))


def looked_up_by_product(m: Planted, x: Tensor) -> Tensor:
    places = x.argmax(-1)
    return F.one_hot(places, 2048).float() @ m.table  # <- one_hot_embedding


def looked_up(m: Planted, x: Tensor) -> Tensor:
    return F.embedding(x.argmax(-1), m.table)


def one_hot_embedding_wasteful() -> Step:
    return within(Planted(looked_up_by_product, table=normal(2048, WIDTH, seed=84)))


def one_hot_embedding_lean() -> Step:
    return within(Planted(looked_up, table=normal(2048, WIDTH, seed=84)))


def general_spectrum(x: Tensor) -> Tensor:
    """Eigenvalues of a Gram matrix, which is symmetric."""
    values = torch.linalg.eigvals(x[0].T @ x[0] / len(x[0]))  # <- general_eigenvalues
    return values.real.sort().values


def symmetric_spectrum(x: Tensor) -> Tensor:
    return torch.linalg.eigvalsh(x[0].T @ x[0] / len(x[0]))


def general_eigenvalues_wasteful() -> Step:
    return beside(general_spectrum)


def general_eigenvalues_lean() -> Step:
    return beside(symmetric_spectrum)


EXPERTS, CHOSEN = 8, 2


def every_expert(m: Planted, x: Tensor) -> Tensor:
    """All experts for every token; all but the chosen ones are multiplied by zero."""
    shares, chosen = F.linear(x[0], m.router).softmax(-1).topk(CHOSEN, dim=-1)
    gates = torch.zeros(len(x[0]), EXPERTS).scatter(1, chosen, shares)
    inner = F.silu(torch.bmm(x.expand(EXPERTS, -1, -1), m.up))  # <- every_expert
    outer = torch.bmm(inner, m.down)  # <- every_expert
    return (outer * gates.T[..., None]).sum(0, keepdim=True)


def chosen_experts(m: Planted, x: Tensor) -> Tensor:
    shares, chosen = F.linear(x[0], m.router).softmax(-1).topk(CHOSEN, dim=-1)
    out = torch.zeros_like(x[0])
    for number in range(EXPERTS):
        rows, place = (chosen == number).nonzero(as_tuple=True)
        outer = F.silu(x[0, rows] @ m.up[number]) @ m.down[number]
        out.index_add_(0, rows, outer * shares[rows, place, None])
    return out[None]


def experts() -> dict[str, Tensor]:
    return {
        "router": matrix(EXPERTS, WIDTH, 85),
        "up": normal(EXPERTS, WIDTH, 4 * WIDTH, seed=86) / WIDTH**0.5,
        "down": normal(EXPERTS, 4 * WIDTH, WIDTH, seed=87) / (4 * WIDTH) ** 0.5,
    }


def every_expert_wasteful() -> Step:
    return within(Planted(every_expert, **experts()))


def every_expert_lean() -> Step:
    return within(Planted(chosen_experts, **experts()))
