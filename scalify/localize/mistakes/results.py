"""Mistakes with results: each right by itself, in the wrong place or on the wrong ranks."""

from scalify.localize.first import Finding, Scene, Why


def other_result(scene: Scene, finding: Finding) -> str | None:
    """Results in each other's places."""
    if finding.why is not Why.OTHER_RESULT or finding.goal is None:
        return None
    wanted, found = finding.goal.baseline, scene.standing(finding.node.id)
    names = {output.value: output.name for output in scene.baseline.outputs}
    if found.counterpart is None or not found.is_related:
        return None
    other, own = names.get(found.counterpart), finding.goal.output or finding.node.id
    if other is None:
        return (
            f"something is missing after it: {own} is the baseline's {found.counterpart}, wanted is {wanted}"
        )
    return (
        f"outputs are swapped: {own} is the baseline's output {other}, wanted is {names.get(wanted, wanted)}"
    )


def other_layout(scene: Scene, finding: Finding) -> str | None:
    """A result on other ranks than is asked for."""
    if finding.why is not Why.OTHER_LAYOUT or finding.goal is None:
        return None
    found = scene.standing(finding.node.id).layout or "in another order of its elements"
    wanted = " or ".join(name for name, _ in finding.goal.choices or ())
    return f"wrong layout: the result is {found}, wanted is {wanted}"
