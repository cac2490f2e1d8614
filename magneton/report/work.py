"""How the work of a row is named: its operators with counts, its module, cut to what a column holds."""

from magneton.compare.model import Row, SideCost, Work
from magneton.match.model import Unpaired
from magneton.report.escape import visible
from magneton.report.origins import short_place

_REASONS: dict[Unpaired, str] = {
    "no-counterpart-value": "its results have no counterpart",
    "low-entropy": "its results are too plain to recognise",
    "ambiguous": "its results have several counterparts",
    "not-sketched": "its results were not sketched",
    "sync": "brings data to the host",
    "side-effect": "works by side effect",
    "dead": "no other operator uses its results",
    "alloc": "allocates memory",
    "setup": "sets up tables from constants",
}


def operators_line(work: Work | None, most: int = 6) -> str:
    """``aten.bmm.default x2, aten._softmax.default, 3 more``."""
    if work is None:
        return "nothing"
    names = [short_name(name) + (f" x{count}" if count > 1 else "") for name, count in work.operators]
    more = f", {len(names) - most} more" if len(names) > most else ""
    return visible(", ".join(names[:most]) + more)


def short_name(operator: str) -> str:
    """``aten.bmm.default`` as ``aten.bmm``: the overload matters where there is another one."""
    return operator.removesuffix(".default")


def module_line(work: Work | None) -> str:
    return visible(work.module_path) if work is not None and work.module_path else ""


def row_title(row: Row, longest: int) -> str:
    """A row in a column of ``longest`` characters: where, else what."""
    if row.kind == "residual":
        return "unattributed"
    if row.kind == "unread":
        return "without a reading"
    only = "only " if row.kind == "leftover" else ""  # the figures stand in the column of its side
    return only + work_title(one_side(row).work, longest - len(only))


def work_title(work: Work | None, longest: int) -> str:
    """The module in which ``work`` is done; outside any, its operators."""
    return _tail(module_line(work) or operators_line(work, most=3), longest)


def _tail(text: str, longest: int) -> str:
    """The end of ``text``: of a module's path, the end tells layers apart."""
    return text if len(text) <= longest else "…" + text[len(text) - longest + 1 :]


def one_side(row: Row) -> SideCost:
    """The side that does the work; the baseline's where both do."""
    for side in (row.baseline, row.candidate):
        if side is not None and side.work is not None:
            return side
    raise ValueError(f"a {row.kind} row has no work on either side")


def work_line(row: Row) -> str:
    """What a row does and where it was asked for: the costliest operator's line; why, for a leftover."""
    if row.kind == "residual":
        return ""
    work = one_side(row).work
    place = short_place(None if work is None else work.source)
    return "  ".join(part for part in (place, operators_line(work, most=4), reason_line(row)) if part)


def reason_line(row: Row) -> str:
    """Why a leftover has no partner, for people."""
    return "" if row.reason is None else reason_text(row.reason)


def reason_text(reason: Unpaired) -> str:
    return _REASONS[reason]
