"""Operators and values that a report on matching speaks of, each described once."""

from collections.abc import Iterable
from dataclasses import dataclass

from magneton.compare.places import source_line
from magneton.match.model import SideName
from magneton.profile.model import Frame, OpId, Profile, Role, ValueId
from magneton.report.escape import visible
from magneton.report.origins import short_place
from magneton.report.work import short_name
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionedOperator:
    side: SideName
    op_id: OpId
    phase: Phase
    name: str
    module_path: str
    source: Frame | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionedValue:
    """``count`` and what follows are those of its sketch; None where it has none."""

    side: SideName
    value_id: ValueId
    role: Role
    name: str
    shape: tuple[int, ...]
    dtype: str
    producer: MentionedOperator | None
    count: int | None
    pos_inf: int | None
    neg_inf: int | None
    nan: int | None
    huge: int | None


def mention_operator(side: SideName, profile: Profile, op_id: OpId) -> MentionedOperator:
    operator = profile.operators[op_id]
    return MentionedOperator(
        side=side,
        op_id=op_id,
        phase=operator.phase,
        name=operator.name,
        module_path=operator.module_path,
        source=source_line(profile.stacks[operator.stack_id]),
    )


def mention_value(side: SideName, profile: Profile, value_id: ValueId) -> MentionedValue:
    value, sketches = profile.values[value_id], profile.sketches
    known = bool(sketches.known[value_id])
    return MentionedValue(
        side=side,
        value_id=value_id,
        role=value.role,
        name=value.name,
        shape=value.shape,
        dtype=value.dtype,
        producer=None if value.producer is None else mention_operator(side, profile, value.producer),
        count=int(sketches.count[value_id]) if known else None,
        pos_inf=int(sketches.pos_inf[value_id]) if known else None,
        neg_inf=int(sketches.neg_inf[value_id]) if known else None,
        nan=int(sketches.nan[value_id]) if known else None,
        huge=int(sketches.huge[value_id]) if known else None,
    )


def operator_line(operator: MentionedOperator) -> str:
    """``baseline:57 aten._softmax  sdpa_attention.py:92``: what ``--explain`` takes comes first."""
    place = short_place(operator.source)
    return f"{operator_ref(operator)} {visible(short_name(operator.name))}{f'  {place}' if place else ''}"


def operator_ref(operator: MentionedOperator) -> str:
    return f"{operator.side}:{operator.op_id}"


def value_line(value: MentionedValue) -> str:
    """``float32 1x64x128 of baseline:57 aten._softmax``; a parameter by its name."""
    made = value.producer
    if made is not None:
        return f"{tensor_type(value)} of {operator_ref(made)} {visible(short_name(made.name))}"
    named = " ".join(part for part in (value.side, value.role, visible(value.name)) if part)
    return f"{named}, {tensor_type(value)}"


def tensor_type(value: MentionedValue) -> str:
    return visible(f"{value.dtype} {'x'.join(map(str, value.shape)) or 'scalar'}")


def values_line(values: Iterable[MentionedValue]) -> str:
    """One value, or the parts of one."""
    return " + ".join(map(value_line, values))
