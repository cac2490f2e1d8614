from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from magneton.systems.structure import named_leaves


class Pair(NamedTuple):
    image: Any
    mask: Any


@dataclass
class Result:
    logits: Any
    note: str


def test_names_follow_the_structure():
    one = torch.zeros(1)
    structure = (
        one,
        [one, {"a": one, 7: 2.5}],
        Pair(image=one, mask=None),
        Result(logits=np.zeros(2), note="text"),
        True,
    )
    assert [name for name, _ in named_leaves(structure, "output")] == [
        "output.0",
        "output.1.0",
        "output.1.1.a",
        "output.1.1.7",
        "output.2.image",
        "output.3.logits",
        "output.4",
    ]


def test_a_single_leaf_has_the_bare_name():
    assert [name for name, _ in named_leaves(torch.zeros(1), "output")] == ["output"]


def test_no_outer_name_adds_no_dot():
    assert [name for name, _ in named_leaves({"x": 1}, "")] == ["x"]


def test_a_structure_that_holds_itself_ends():
    loop: list[Any] = [1.0]
    loop.append(loop)
    names = [name for name, _ in named_leaves(loop, "output")]
    assert names[0] == "output.0"
    assert len(names) < 100
