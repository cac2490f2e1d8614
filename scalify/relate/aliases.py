"""Whether results take over the buffers of the same inputs on both sides: KV caches, updated buffers."""

from collections.abc import Mapping, MutableMapping, Sequence

from scalify.relate.results import OutputPair


def check_aliases(
    pairs: Sequence[OutputPair], counterpart: Mapping[str, str], undecided: MutableMapping[str, str]
) -> tuple[str, ...]:
    """Say which outputs take over another input than their counterpart; a note where one side tells none.

    ``counterpart`` gives the baseline's name of a candidate's input.
    """
    told = [any(pair[side].alias for pair in pairs) for side in (0, 1)]
    if not all(told):
        side = "candidate" if told[0] else "baseline"
        note = f"which inputs the outputs take over is not compared: the {side} does not say"
        return (note,) if any(told) else ()
    for one, other in pairs:
        expected = counterpart.get(other.alias, f"{other.alias} (unrelated)") if other.alias else None
        if one.alias != expected:
            why = (
                f"takes over the buffer of {other.alias or 'no input'}, "
                f"the baseline's {one.name} that of {one.alias or 'no input'}"
            )
            undecided.setdefault(f"output {other.name}", why)
    return ()
