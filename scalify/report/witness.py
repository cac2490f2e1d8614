"""How two programs differ: which element of which output, what was expected, and on which inputs."""

from scalify.report.grouping import grouped
from scalify.report.page import Page, Styled
from scalify.report.quantities import counted
from scalify.report.result import Result
from scalify.verdict import Difference, GivenValue, OutputDifference, Witness

GIVEN_SHOWN = 4
VALUES_SHOWN = 8
OTHERS_SHOWN = 4


def add_witness(page: Page, result: Result, *, full: bool) -> None:
    """The difference, the inputs that show it, and how to see it again. ``full`` shows all inputs."""
    witness = result.witness
    if witness is None:
        return
    page.heading("How they differ")
    _add_output(page, witness)
    _add_element(page, witness)
    _add_others(page, witness, full=full)
    _add_given(page, witness, full=full)
    file = result.witness_file
    page.fact("replay", f"scalify replay {file}" if file else "write the values with --witness FILE first")


def difference_text(difference: Difference) -> str:
    """``element [0, 3] of logits on rank 1 is 2.5, expected is 1.25``."""
    found = "has no value" if difference.found is None else f"is {_numbers(difference)[1]}"
    where = f"element {list(difference.index)} of {difference.candidate} on rank {difference.rank}"
    return f"{where} {found}, expected is {_numbers(difference)[0]}"


def _add_output(page: Page, witness: Witness) -> None:
    difference = witness.difference
    own = next(
        (
            each
            for each in witness.outputs
            if (each.baseline, each.candidate) == (difference.baseline, difference.candidate)
        ),
        None,
    )
    renamed = difference.baseline != difference.candidate.partition("@rank")[0]
    of = f" (the baseline's {difference.baseline})" if renamed else ""
    page.fact("output", Styled(difference.candidate, "bold"), of, _how_many(own))
    if own is not None and own.pattern:
        page.fact("", Styled(f"each of them is {own.pattern}", "bold"))


def _how_many(own: OutputDifference | None) -> str:
    if own is None:
        return ""
    if own.differing == own.compared > 1:
        return f": all {counted(own.compared, 'element')} differ"
    return f": {own.differing:,} of {counted(own.compared, 'element')} differ"


def _add_element(page: Page, witness: Witness) -> None:
    difference = witness.difference
    index, source = list(difference.index), list(difference.baseline_index)
    of = "" if index == source else f", in the baseline {source}"
    page.fact("element", f"{index} on rank {difference.rank}{of}")
    expected, found = _numbers(difference)
    page.fact("expected", Styled(expected, "good"), ", as the baseline computes it")
    if difference.found is None:
        why = witness.beyond or "it is not a number, or lies outside of a table"
        page.fact("found", Styled("no value", "bad"), f": {why}")
        return
    explained = f"; rounding explains {difference.uncertainty:.1g} at most" if difference.uncertainty else ""
    page.fact("found", Styled(found, "bad"), explained)


def _numbers(difference: Difference) -> tuple[str, str]:
    """Both numbers, with as many digits as tell them apart."""
    if difference.found is None:
        return f"{difference.expected:.6g}", ""
    for digits in (6, 10):
        expected, found = f"{difference.expected:.{digits}g}", f"{difference.found:.{digits}g}"
        if expected != found:
            return expected, found
    return repr(difference.expected), repr(difference.found)


def _add_others(page: Page, witness: Witness, *, full: bool) -> None:
    """What became of the other outputs, of which many may be wrong for the same reason."""
    own = witness.difference.candidate
    others = [each for each in witness.outputs if each.candidate != own and each.differing]
    groups = grouped(others, lambda each: each.candidate, lambda each: each.pattern)
    shown = groups if full else groups[:OTHERS_SHOWN]
    for number, group in enumerate(shown):
        pattern = f": {group.first.pattern}" if group.first.pattern else ""
        name = group.name if len(group.items) == 1 else f"{counted(len(group.items), 'output')} {group.name}"
        page.fact("" if number else "also", name, pattern)
    if len(groups) > len(shown):
        page.fact("", Styled(f"and {counted(len(groups) - len(shown), 'more output')}", "faint"))


def _add_given(page: Page, witness: Witness, *, full: bool) -> None:
    few = [each for each in witness.given if each.values is not None and len(each.values) <= VALUES_SHOWN]
    shown = few if full else few[:GIVEN_SHOWN]
    for number, given in enumerate(shown):
        page.fact("" if number else "inputs", f"{_type(given)} = {_values(given)}")
    drawn = [each for each in witness.given if each not in shown]
    groups = grouped(drawn, lambda each: each.name, _shape)
    for number, group in enumerate(groups if full else groups[:GIVEN_SHOWN]):
        times = "" if len(group.items) == 1 else f"{counted(len(group.items), 'input')} "
        page.fact("" if number or shown else "inputs", f"{times}{group.name} {_shape(group.first)}")
    if len(groups) > GIVEN_SHOWN and not full:
        left = sum(len(group.items) for group in groups[GIVEN_SHOWN:])
        page.fact("", Styled(f"and {counted(left, 'more input')}", "faint"))
    page.fact("values", f"drawn as {witness.draw.family!r}, seed {witness.draw.seed}")
    if witness.free:
        names = ", ".join(group.name for group in grouped(witness.free, str, lambda _: ""))
        page.fact("free", f"{names}: hold nothing of the baseline, and may hold anything")


def _type(given: GivenValue) -> str:
    return f"{given.name} {_shape(given)}"


def _shape(given: GivenValue) -> str:
    return f"{given.dtype}[{', '.join(map(str, given.shape))}]"


def _values(given: GivenValue) -> str:
    values = [f"{value:.6g}" for value in given.values or ()]
    return values[0] if not given.shape and values else f"[{', '.join(values)}]"
