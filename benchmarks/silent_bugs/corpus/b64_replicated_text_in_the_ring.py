"""B64: text that all ranks hold takes part in the ring over which images are cut, once on every step."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team, all_gathered
from silent_bugs.hosts_inference import ALONE, Built, Groups, normed
from torch import Tensor, nn

from scalify.ir.mesh import Mesh

WIDTH, HEADS, TEXT, IMAGE = 16, 2, 3, 8


class JointBlock(nn.Module):
    """Text and image each with projections of their own; both attend to both."""

    def __init__(self, team: Team) -> None:
        super().__init__()
        self.team = team
        self.text_qkv, self.image_qkv = (nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.text_out, self.image_out = (nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.text_gain, self.image_gain = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))

    def forward(self, text: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        """text [S, W]; image [I / ranks, W]."""
        of_text = heads(self.text_qkv(normed(text, self.text_gain)))
        of_image = heads(self.image_qkv(normed(image, self.image_gain)))
        q = torch.cat((of_text[0], of_image[0]), 1)
        y = self.attended(q, of_text[1:], of_image[1:]).transpose(0, 1).flatten(1)
        text = text + self.text_out(y[: text.shape[0]])
        image = image + self.image_out(y[text.shape[0] :])
        return text, image + self.down(F.gelu(self.up(image)))

    def attended(self, q: Tensor, text: Sequence[Tensor], image: Sequence[Tensor]) -> Tensor:
        """q [H, Q, D]; keys and values [H, S, D], [H, I / ranks, D] -> [H, Q, D]."""
        k, v = (torch.cat(parts, 1) for parts in zip(text, image, strict=True))
        return F.scaled_dot_product_attention(q, k, v)


def heads(x: Tensor) -> list[Tensor]:
    """Query, key and value, heads first [H, T, D]."""
    return [part.unflatten(-1, (HEADS, -1)).transpose(0, 1) for part in x.chunk(3, -1)]


class RingBlock(JointBlock):
    """Text is attended to where it is; keys and values of the image go round the ranks."""

    def attended(self, q: Tensor, text: Sequence[Tensor], image: Sequence[Tensor]) -> Tensor:
        return self.merged([partial(q, *text), *self.around(q, *image)])

    def around(self, q: Tensor, k: Tensor, v: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What q gets of every rank's keys and values, which were gathered at once."""
        keys, values = (all_gathered(x, 1, self.team).chunk(self.team.size, 1) for x in (k, v))
        return [partial(q, *pair) for pair in zip(keys, values, strict=True)]

    def merged(self, parts: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Each part weighted by what its scores sum to."""
        y, lse = parts[0]
        for other, other_lse in parts[1:]:
            total = torch.logaddexp(lse, other_lse)
            y = y * (lse - total).exp() + other * (other_lse - total).exp()
            lse = total
        return y


def partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Attention to some of the keys, and the logarithm of the sum of its weights."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    lse = scores.logsumexp(-1, keepdim=True)
    return (scores - lse).exp() @ v, lse


class AllAroundBlock(RingBlock):
    def attended(self, q: Tensor, text: Sequence[Tensor], image: Sequence[Tensor]) -> Tensor:
        k, v = (torch.cat(parts, 1) for parts in zip(text, image, strict=True))  # planted
        return self.merged(self.around(q, k, v))


class Transformer(nn.Module):
    """Blocks over text and image."""

    def __init__(self, blocks: Sequence[type[JointBlock]], team: Team = ALONE) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block(team) for block in blocks)
        self.gain = nn.Parameter(torch.ones(WIDTH))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, text: Tensor, image: Tensor) -> Tensor:
        """text [S, W]; image [I / ranks, W] -> [I / ranks, W]."""
        for block in self.blocks:
            text, image = block(text, image)
        return self.head(normed(image, self.gain))


def inputs(ranks: int = 1) -> tuple[Tensor, Tensor]:
    return torch.zeros(TEXT, WIDTH), torch.zeros(IMAGE // ranks, WIDTH)


def baseline() -> Built:
    return Transformer((JointBlock, JointBlock)), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return Transformer((RingBlock, AllAroundBlock), Team.of(groups["cp"])), inputs(2)


def fixed(rank: int, groups: Groups) -> Built:
    return Transformer((RingBlock, RingBlock), Team.of(groups["cp"])), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("cp", 2),)))
