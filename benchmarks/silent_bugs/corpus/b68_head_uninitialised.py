"""B68: the last pipeline stage has not loaded the embedding that its tied head needs."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from silent_bugs.entry import Entry
from silent_bugs.hosts_inference import (
    ALONE,
    CONFIG,
    Attention,
    Built,
    Embedding,
    Groups,
    Layer,
    Mlp,
    RMSNorm,
    inputs,
)
from torch import Tensor, nn
from torch.nn import functional as F

from scalify.ir.mesh import Mesh

LAYERS = 2


class Whole(nn.Module):
    """The head is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = Embedding(CONFIG, ALONE)
        self.layers = nn.ModuleList(
            Layer(CONFIG, Attention(CONFIG, ALONE), Mlp(CONFIG, ALONE)) for _ in range(LAYERS)
        )
        self.norm = RMSNorm(CONFIG.hidden)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        x, residual = self.embed_tokens(input_ids), None
        for layer in self.layers:
            x, residual = layer(positions, x, residual)
        x, _ = self.norm(x, residual)
        return F.linear(x, self.embed_tokens.weight)


class Stages(nn.Module):
    """The first stage embeds; what it computes goes to the last, which has the head; all get the logits."""

    def __init__(self, rank: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.rank, self.group = rank, group
        layer = Layer(CONFIG, Attention(CONFIG, ALONE), Mlp(CONFIG, ALONE))
        self.layers = nn.ModuleDict({str(rank): layer})
        self.norm = RMSNorm(CONFIG.hidden) if rank == LAYERS - 1 else None
        self.load()

    def load(self) -> None:
        """Both ends hold the embedding."""
        self.embed_tokens = Embedding(CONFIG, ALONE)

    def head(self, x: Tensor) -> Tensor:
        return F.linear(x, self.embed_tokens.weight)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        layer = self.layers[str(self.rank)]
        logits = torch.zeros(CONFIG.tokens, CONFIG.vocabulary, device=input_ids.device)
        state = torch.zeros(2, CONFIG.tokens, CONFIG.hidden, device=input_ids.device)
        if self.rank == 0:
            state = torch.stack(layer(positions, self.embed_tokens(input_ids), None))
        state = funcol.broadcast(state, 0, self.group)
        if self.norm is not None:
            x, residual = layer(positions, state[0], state[1])
            x, _ = self.norm(x, residual)
            logits = self.head(x)
        return funcol.broadcast(logits, 1, self.group)


class UntiedStages(Stages):
    """The last stage keeps its own layers' weights of what is loaded, and the embedding is none of these."""

    def load(self) -> None:
        if self.rank == 0:
            self.embed_tokens = Embedding(CONFIG, ALONE)
        else:
            self.lm_head = nn.Linear(CONFIG.hidden, CONFIG.vocabulary, bias=False)

    def head(self, x: Tensor) -> Tensor:
        return self.lm_head(x)  # planted


def baseline() -> Built:
    return Whole(), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return UntiedStages(rank, groups["pp"]), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Stages(rank, groups["pp"]), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("pp", 2),)))
