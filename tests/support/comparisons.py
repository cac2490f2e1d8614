"""Pairs of small profiles whose operators match one to one, for comparing and reporting.

``a_side`` is a model of equal layers, each an attention and an mlp; ``matched`` pairs two of them layer
by layer. Costs are given per operator of a layer, the same in each round but for ``noise``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from profiles import a_value, an_operator, an_origin

from magneton.match.model import Leftover, Matching, Region, RegionGroup
from magneton.profile.model import (
    BlockReading,
    Frame,
    KeyId,
    Operator,
    OpId,
    Profile,
    ReplayKey,
    ReplayReading,
    Stack,
    StackId,
    ValueId,
)
from magneton.profile.sketches import stack_sketches
from magneton.workload import PREFILL, Workload

LAYERS = 4
ROUNDS = 7
# One layer: (module, operator, line)
ATTENTION = (("self_attn", "aten.bmm.default", 11), ("self_attn", "aten._softmax.default", 12))
MLP = (("mlp", "aten.mm.default", 21),)


def a_side(
    costs_j: Sequence[float] = (1.0, 0.5, 2.0),
    *,
    layer: Sequence[tuple[str, str, int]] = (*ATTENTION, *MLP),
    residual_j: float = 1.0,
    noise: float = 0.01,
    layers: int = LAYERS,
    rounds: int = ROUNDS,
    seed: int = 0,
    file: str = "model.py",
    effect: Any = "compute",
    **origin: Any,
) -> Profile:
    """A profile of ``layers`` layers; ``costs_j`` is what each operator of a layer costs per execution."""
    random = np.random.default_rng(seed)
    factors = 1 + noise * random.standard_normal((rounds, len(costs_j) + 1))
    operators, values = _chain(layer, layers, costs_j, effect)
    keys = range(len(layer))
    step_j = layers * sum(costs_j) + residual_j
    logits = np.random.default_rng(1).standard_normal((2, 16)).astype(np.float32)
    return Profile(
        origin=an_origin(**({"session": "one", "workload": Workload(phases=(PREFILL,))} | origin)),
        operators=operators,
        values=values,
        sketches=stack_sketches([None] * len(values)),
        stacks=tuple(_stack(file, line) for _, _, line in layer),
        keys=tuple(ReplayKey(key_id=KeyId(k), skipped=None) for k in keys),
        blocks=tuple(
            BlockReading(
                pass_="clean",
                phase=PREFILL,
                round=r,
                start_s=float(r),
                steps=2,
                duration_s=2 * 0.1 * step_j * factors[r, -1],
                energy_j=2 * step_j * factors[r, -1],
            )
            for r in range(rounds)
        ),
        replays=tuple(
            ReplayReading(
                key_id=KeyId(k),
                round=r,
                executions=10,
                duration_s=0.1 * costs_j[k] * factors[r, k],
                energy_j=costs_j[k] * factors[r, k],
            )
            for r in range(rounds)
            for k in keys
        ),
        outputs={"prefill.logits": logits, "prefill.tokens": logits.argmax(axis=-1)},
    )


def _chain(
    layer: Sequence[tuple[str, str, int]], layers: int, costs_j: Sequence[float], effect: Any
) -> tuple[tuple[Operator, ...], tuple[Any, ...]]:
    kinds = [(index, k) for index in range(layers) for k in range(len(layer))]
    operators = tuple(
        an_operator(
            op_id,
            name=layer[k][1],
            module_path=f"model.layers.{index}.{layer[k][0]}",
            inputs=(ValueId(op_id),),
            outputs=(ValueId(op_id + 1),),
            stack_id=StackId(k),
            key_id=KeyId(k),
            duration_s=0.1 * costs_j[k],
            effect=effect,
            flops=8 * (k + 1),
        )
        for op_id, (index, k) in enumerate(kinds)
    )
    made = (a_value(n + 1, producer=OpId(n)) for n in range(len(operators)))
    return operators, (a_value(0, role="input", name="input_ids"), *made)


def _stack(file: str, line: int) -> Stack:
    return Stack(
        frames=(
            Frame(file="run.py", line=3, function="main", code="model(ids)"),
            Frame(file=file, line=line, function="forward", code=f"x = work_of_line_{line}(x)"),
            Frame(
                file="/env/lib/python3.11/site-packages/torch/nn/functional.py",
                line=9,
                function="call",
                code="return _C.call(x)",
            ),
        )
    )


def with_readings_lost(profile: Profile, key: int) -> Profile:
    """The same profile, but replay never read operators of ``key``."""
    lost = tuple(replace(r, energy_j=None) if r.key_id == key else r for r in profile.replays)
    return replace(profile, replays=lost)


def matched(baseline: Profile, candidate: Profile, *, left: Sequence[str] = ()) -> Matching:
    """Pairs the operators of equal modules; operators named in ``left`` are left over on either side."""
    one, other = _by_module(baseline, left), _by_module(candidate, left)
    regions: list[Region] = []
    groups: dict[str, list[int]] = {}
    for path in dict.fromkeys((*one, *other)):
        groups.setdefault(path.rpartition(".")[2], []).append(len(regions))
        regions.append(
            Region(
                phase=PREFILL,
                baseline=tuple(one.get(path, ())),
                candidate=tuple(other.get(path, ())),
                produces=(),
                consumes=(),
            )
        )
    return Matching(
        pairs=(),
        regions=tuple(regions),
        groups=tuple(RegionGroup(regions=tuple(members)) for members in groups.values()),
        only_baseline=_leftovers(baseline, left),
        only_candidate=_leftovers(candidate, left),
    )


def _by_module(profile: Profile, left: Sequence[str]) -> dict[str, list[OpId]]:
    found: dict[str, list[OpId]] = {}
    for operator in profile.operators:
        if operator.name not in left:
            found.setdefault(operator.module_path, []).append(operator.op_id)
    return found


def _leftovers(profile: Profile, left: Sequence[str]) -> tuple[Leftover, ...]:
    return tuple(
        Leftover(op_id=operator.op_id, reason="no-counterpart-value")
        for operator in profile.operators
        if operator.name in left
    )
