"""What happens after the model, or once for each token: logits, sampling, metrics, loops."""

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal, within
from torch import Tensor

LARGE, KEPT, ROWS = 8192, 16, 8
CLASSES = 512


def vocabulary(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    return {"table": matrix(LARGE, WIDTH, 51).to(dtype)}


def cast_all_logits(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x.bfloat16(), m.table).float()[:, -1]  # <- upcast_logits


def cast_last_logits(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x.bfloat16(), m.table)[:, -1].float()


def upcast_logits_wasteful() -> Step:
    return beside(Planted(cast_all_logits, **vocabulary(torch.bfloat16)))


def upcast_logits_lean() -> Step:
    return beside(Planted(cast_last_logits, **vocabulary(torch.bfloat16)))


def logits_of_all(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x, m.table)[:, -1]  # <- all_logits


def logits_of_last(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x[:, -1], m.table)


def all_logits_wasteful() -> Step:
    return beside(Planted(logits_of_all, **vocabulary()))


def all_logits_lean() -> Step:
    return beside(Planted(logits_of_last, **vocabulary()))


def kept_by_sort(m: Planted, x: Tensor) -> Tensor:
    """Logits of the last positions, all but the best set to minus infinity, as probabilities."""
    logits = F.linear(x[:, -ROWS:], m.table)
    ordered, places = logits.sort(dim=-1, descending=True)  # <- full_sort
    ordered[..., KEPT:] = float("-inf")
    kept = torch.empty_like(logits).scatter_(-1, places, ordered)  # <- full_sort
    return kept.softmax(-1)


def kept_by_threshold(m: Planted, x: Tensor) -> Tensor:
    logits = F.linear(x[:, -ROWS:], m.table)
    least = logits.topk(KEPT, dim=-1).values[..., -1:]
    return logits.masked_fill(logits < least, float("-inf")).softmax(-1)


def full_sort_wasteful() -> Step:
    return beside(Planted(kept_by_sort, **vocabulary()))


def full_sort_lean() -> Step:
    return beside(Planted(kept_by_threshold, **vocabulary()))


def routed_by_sort(m: Planted, x: Tensor) -> Tensor:
    """The best of many, by a sort of all."""
    shares = F.linear(x[:, -ROWS:], m.table).softmax(-1)
    return shares.argsort(dim=-1, descending=True)[..., :KEPT]  # <- costly_top


def routed_by_top(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x[:, -ROWS:], m.table).softmax(-1).topk(KEPT, dim=-1).indices


def costly_top_wasteful() -> Step:
    return beside(Planted(routed_by_sort, **vocabulary()))


def costly_top_lean() -> Step:
    return beside(Planted(routed_by_top, **vocabulary()))


CHUNKS = 64


def gathered_by_growing(x: Tensor) -> Tensor:
    """What an evaluation loop keeps of every step."""
    kept = x.new_empty(0, WIDTH)
    for chunk in x[0].chunk(CHUNKS):
        wide = chunk.repeat(8, 1) + 1
        kept = torch.cat([kept, wide])  # <- growing_concatenation
    return kept


def gathered_at_once(x: Tensor) -> Tensor:
    return torch.cat([chunk.repeat(8, 1) + 1 for chunk in x[0].chunk(CHUNKS)])


def growing_concatenation_wasteful() -> Step:
    return beside(gathered_by_growing)


def growing_concatenation_lean() -> Step:
    return beside(gathered_at_once)


def one_by_one(m: Planted, x: Tensor) -> Tensor:
    return torch.stack([m.weight @ row for row in x[0]])  # <- sample_by_sample


def in_one_batch(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x[0], m.weight)


def sample_by_sample_wasteful() -> Step:
    return beside(Planted(one_by_one, weight=matrix(2 * WIDTH, WIDTH, 52)))


def sample_by_sample_lean() -> Step:
    return beside(Planted(in_one_batch, weight=matrix(2 * WIDTH, WIDTH, 52)))


class Confusion(torch.nn.Module):
    """A metric that counts pairs of classes; ``full_state_update`` as metrics of that name have it."""

    def __init__(self, *, full_state_update: bool) -> None:
        super().__init__()
        self.full_state_update = full_state_update
        self.weights = torch.nn.Buffer(matrix(CLASSES, WIDTH, 53))

    def update(self, state: Tensor, x: Tensor) -> Tensor:
        classes = F.linear(x[0], self.weights).softmax(-1)
        return state + classes.T @ classes.cumsum(0)

    def forward(self, x: Tensor) -> Tensor:
        zero = x.new_zeros(CLASSES, CLASSES)
        if self.full_state_update:
            kept = self.update(zero, x)
            batch = self.update(zero, x)  # <- double_update
        else:
            kept = batch = self.update(zero, x)
        return torch.stack([kept.mean(0), batch.mean(1)])


def double_update_wasteful() -> Step:
    return beside(Confusion(full_state_update=True))


def double_update_lean() -> Step:
    return beside(Confusion(full_state_update=False))


GUIDANCE = 1.0


def guided(m: Planted, x: Tensor) -> Tensor:
    """A denoiser that is run twice, though its guidance scale of 1 drops the unconditional half."""
    with_prompt = denoised(m, x + m.prompt)
    without = denoised(m, x)  # <- guidance_of_one
    return without + GUIDANCE * (with_prompt - without)


def unguided(m: Planted, x: Tensor) -> Tensor:
    return denoised(m, x + m.prompt)


def denoised(m: Planted, x: Tensor) -> Tensor:
    return F.linear(F.gelu(F.linear(x, m.up)), m.down)


def denoiser() -> dict[str, Tensor]:
    inner = 4 * WIDTH
    return {
        "up": matrix(inner, WIDTH, 54),
        "down": matrix(WIDTH, inner, 55),
        "prompt": normal(LENGTH, WIDTH, seed=56),
    }


def guidance_of_one_wasteful() -> Step:
    return within(Planted(guided, **denoiser()))


def guidance_of_one_lean() -> Step:
    return within(Planted(unguided, **denoiser()))


TOKENS = 24


def without_cache(m: Planted, x: Tensor) -> Tensor:
    """Each token of a continuation attends to keys and values of the whole prefix."""
    made: list[Tensor] = []
    for end in range(LENGTH - TOKENS, LENGTH):
        keys, values = F.linear(x[:, : end + 1], m.kv).chunk(2, dim=-1)  # <- prefix_again
        made.append(attention_of(x[:, end : end + 1], keys, values))
    return torch.cat(made, 1)


def with_cache(m: Planted, x: Tensor) -> Tensor:
    start = LENGTH - TOKENS
    cache = x.new_empty(1, LENGTH, 2 * WIDTH)
    cache[:, :start] = F.linear(x[:, :start], m.kv)
    made: list[Tensor] = []
    for end in range(start, LENGTH):
        cache[:, end : end + 1] = F.linear(x[:, end : end + 1], m.kv)
        keys, values = cache[:, : end + 1].chunk(2, dim=-1)
        made.append(attention_of(x[:, end : end + 1], keys, values))
    return torch.cat(made, 1)


def attention_of(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return torch.softmax(query @ keys.transpose(1, 2) / WIDTH**0.5, -1) @ values


def prefix_again_wasteful() -> Step:
    return beside(Planted(without_cache, kv=matrix(2 * WIDTH, WIDTH, 57)))


def prefix_again_lean() -> Step:
    return beside(Planted(with_cache, kv=matrix(2 * WIDTH, WIDTH, 57)))
