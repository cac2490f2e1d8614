"""Mistakes that people make when they distribute a program, each as a function that recognises it.

In: the suspect in its scene. Out: one sentence, or nothing. The first that recognises something speaks.
"""

from collections.abc import Callable, Sequence

from scalify.localize.first import Finding, Scene
from scalify.localize.mistakes.code import (
    different_constant,
    other_attribute,
    other_operand,
    swapped_operands,
    swapped_transpose,
    wrong_operator,
)
from scalify.localize.mistakes.ranks import (
    added_to_pending,
    counted_per_rank,
    missing_combination,
    parts_combined,
    unlike_factors,
    unused_combination,
    wrong_combination,
    wrong_divisor,
    wrong_gather,
    wrong_group,
    wrong_shard,
)
from scalify.localize.mistakes.results import other_layout, other_result
from scalify.localize.mistakes.windows import fused_as_one, moved_window, wrong_part

Mistake = Callable[[Scene, Finding], str | None]

MISTAKES: Sequence[Mistake] = (
    other_result,
    unused_combination,
    wrong_combination,
    wrong_group,
    parts_combined,
    added_to_pending,
    missing_combination,
    counted_per_rank,
    different_constant,
    wrong_operator,
    swapped_transpose,
    swapped_operands,
    moved_window,
    wrong_part,
    fused_as_one,
    other_layout,
    wrong_gather,
    wrong_shard,
    unlike_factors,
    wrong_divisor,
    other_operand,
    other_attribute,
)


def guess(scene: Scene, finding: Finding) -> str:
    """The likely mistake, or nothing."""
    return next((text for mistake in MISTAKES if (text := mistake(scene, finding))), "")
