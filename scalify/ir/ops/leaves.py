"""Where values come from: inputs, constants, counters, the rank, random draws."""

from math import prod

from scalify.ir.graph import DType, TensorType
from scalify.ir.mesh import RankInt
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning import leaves as means
from scalify.ir.ops.shapes import axis
from scalify.ir.ops.spec import Call, define, mistake

MAX_CONSTANT_ELEMENTS = 65_536


def _declared(call: Call) -> TensorType:
    return call.target()


def _constant(call: Call) -> TensorType:
    """Complex elements are stated as two numbers each, real part first."""
    declared = call.target()
    if ("data" in call.attrs) == ("digest" in call.attrs):
        raise mistake("constant has either data or a digest")
    if "data" in call.attrs:
        _check_data(declared, call)
    return declared


def _check_data(declared: TensorType, call: Call) -> None:
    data = call.attrs["data"]
    assert isinstance(data, tuple)
    per_element = 2 if KIND_OF[declared.dtype] == "complex" else 1
    count = prod(declared.shape)
    if len(data) > MAX_CONSTANT_ELEMENTS * per_element:
        raise mistake(f"a constant of more than {MAX_CONSTANT_ELEMENTS} elements has a digest, not data")
    if len(data) not in (count * per_element, per_element):
        raise mistake(f"constant of {count} elements holds {len(data)} numbers")
    if not set(map(type, data)) <= _ELEMENTS[declared.dtype]:
        raise mistake(f"constant of dtype {declared.dtype} holds numbers of another kind")


_INTS: frozenset[type] = frozenset({int, RankInt})
_REALS: frozenset[type] = frozenset({int, float})
_ELEMENTS: dict[DType, frozenset[type]] = {
    dtype: frozenset({bool}) if kind == "bool" else _INTS if kind == "int" else _REALS
    for dtype, kind in KIND_OF.items()
}


def _iota(call: Call) -> TensorType:
    declared = call.target()
    axis(call, "axis", len(declared.shape))
    return declared


def _rank(call: Call) -> TensorType:
    if call.integer("stride") < 1 or call.integer("size") < 1:
        raise mistake("stride and size of rank should be at least 1")
    return TensorType("i64", ())


LEAVES = (
    define(
        "input",
        0,
        _declared,
        name=AttrSpec(kind="str"),
        role=AttrSpec(kind="str", choices=("input", "parameter", "buffer"), default="input"),
        position=AttrSpec(kind="int", optional=True),
    ),
    define(
        "constant",
        0,
        _constant,
        means.constant,
        data=AttrSpec(kind="data", optional=True),
        digest=AttrSpec(kind="str", optional=True),
    ),
    define("iota", 0, _iota, means.iota, axis=AttrSpec(kind="int")),
    define("rank", 0, _rank, means.rank, stride=AttrSpec(kind="int"), size=AttrSpec(kind="int")),
    define("random", 0, _declared, key=AttrSpec(kind="str"), kind=AttrSpec(kind="str")),
    define(
        "opaque",
        (0, None),
        _declared,
        target=AttrSpec(kind="str"),
        config=AttrSpec(kind="str", default=""),
    ),
)
