"""Damaged and hostile serialized modules: one line, whatever the damage."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.check import check
from scalify.load.hlo import read_protobuf
from scalify.load.hlo.schema import MESSAGES, SKIPPED, message_class
from scalify.load.hlo.translate import OPCODES
from scalify.load.hlo.wire import EXTRAS, readers

F32, S32, TUPLE = 11, 4, 13
INTEGERS = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 4, 7, 64, 2**31 - 1, 2**31, 2**62])


def small_module() -> Any:
    """A module with an instruction of most kinds, well-formed."""
    module = message_class("Module")(name="m", entry_name="main", entry=2)
    combine = module.computations.add(name="combine", id=1, root=3)
    for number in range(2):
        _add(combine, 1 + number, "parameter", (), parameter_number=number)
    _add(combine, 3, "add", (), operands=[1, 2])
    main = module.computations.add(name="main", id=2, root=21)
    _add(main, 10, "parameter", (4, 8))
    _add(main, 11, "parameter", (4,), S32, parameter_number=1)
    zero = _add(main, 12, "constant", ())
    zero.literal.shape.element_type = F32
    zero.literal.f32s = b"\0\0\0\0"
    _add(main, 13, "slice", (4, 4), operands=[10])
    for limit in (4, 4):
        main.instructions[-1].slices.add(limit=limit, stride=1)
    _add(main, 14, "transpose", (8, 4), operands=[10], dimensions=[1, 0])
    _add(main, 15, "dot", (4, 4), operands=[13, 14]).dot.lhs_contracting.append(1)
    main.instructions[-1].dot.rhs_contracting.append(1)
    main.instructions[-1].shape.dimensions[:] = (4, 8)
    main.instructions[-1].operands[:] = (13, 14)
    _add(main, 16, "reduce", (4,), operands=[15, 12], dimensions=[1], called=[1])
    _add(main, 17, "all-reduce", (4,), operands=[16], called=[1]).groups.add(ids=[0, 1])
    gather = _add(main, 18, "gather", (4, 8), operands=[10, 11], gather_sizes=[1, 8])
    gather.gather.offset.append(1)
    gather.gather.collapsed.append(0)
    gather.gather.start_map.append(0)
    gather.gather.index_vector = 1
    _add(main, 19, "broadcast", (4, 8), operands=[17], dimensions=[0])
    _add(main, 20, "multiply", (4, 8), operands=[18, 19])
    root = _add(main, 21, "tuple", (), TUPLE, operands=[20, 17])
    root.shape.tuple_shapes.add(element_type=F32, dimensions=[4, 8])
    root.shape.tuple_shapes.add(element_type=F32, dimensions=[4])
    module.aliases.entries.add(output=[0], parameter=0)
    return module


def _add(
    computation: Any, id: int, opcode: str, dims: tuple[int, ...], element: int = F32, **fields: Any
) -> Any:
    added = computation.instructions.add(name=f"{opcode}.{id}", opcode=opcode, id=id, **fields)
    added.shape.element_type = element
    added.shape.dimensions.extend(dims)
    return added


def read(data: bytes) -> None:
    """Load and check; only the two errors that a user can put right may come of it."""
    try:
        check(read_protobuf(data))
    except (InvalidGraph, UnsupportedFormat) as error:
        assert "\n" not in str(error)
        assert error.hint


DATA = small_module().SerializeToString()


def test_the_module_is_well_formed():
    check(read_protobuf(DATA))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes(flips: list[tuple[int, int]]):
    data = bytearray(DATA)
    for place, value in flips:
        data[place] = value
    read(bytes(data))


@given(st.integers(0, len(DATA) - 1))
def test_cut_files(size: int):
    read(DATA[:size])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_wrong_fields_of_well_formed_messages(data: st.DataObject):
    module = small_module()
    for _ in range(data.draw(st.integers(1, 3))):
        computation = module.computations[data.draw(st.integers(0, 1))]
        place = data.draw(st.integers(0, len(computation.instructions) - 1))
        _damage(computation.instructions[place], data)
    read(module.SerializeToString())


def _damage(message: Any, data: st.DataObject) -> None:
    """Change one field somewhere below a message."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = fields[data.draw(st.integers(0, len(fields) - 1))]
    if field.name == "opcode":
        message.opcode = data.draw(st.sampled_from([*OPCODES, "while", "map", "no-such-opcode"]))
    elif field.message_type is not None:
        part = value[data.draw(st.integers(0, len(value) - 1))] if field.is_repeated else value
        _damage(part, data)
    elif field.is_repeated:
        _damage_list(value, data)
    elif isinstance(value, int) and not isinstance(value, bool):
        limit = 2**63 if field.cpp_type == field.CPPTYPE_INT64 else 2**31
        setattr(message, field.name, max(-limit, min(data.draw(INTEGERS), limit - 1)))


def _damage_list(values: Any, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    match data.draw(st.sampled_from(["drop", "double", "change"])):
        case "drop":
            del values[place]
        case "double":
            values.append(values[place])
        case _:
            values[place] = data.draw(INTEGERS)


def test_an_unknown_field_is_refused_by_its_number():
    instruction = message_class("Instruction")(name="add.1", opcode="add", id=1)
    sparsity = bytes([0xB2, 0x05, 0x00])  # field 86, of no length
    with pytest.raises(UnsupportedFormat, match=r"instructions add\.1 sets field 86"):
        read_protobuf(_around(instruction.SerializeToString() + sparsity))


def test_an_unknown_field_of_the_metadata_is_nobody_s_business():
    module = small_module()
    data = module.computations[1].instructions[0].SerializeToString() + bytes([0x3A, 0x03, 0xF0, 0x06, 0x01])
    parsed = message_class("Instruction").FromString(data)
    module.computations[1].instructions[0].CopyFrom(parsed)
    check(read_protobuf(module.SerializeToString()))


def _around(instruction: bytes) -> bytes:
    computation = _field(1, b"main") + _field(2, instruction)
    return _field(1, b"m") + _field(2, b"main") + _field(3, computation)


def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def test_every_field_is_read_or_skipped_for_a_reason():
    declared = {field.split()[0] for field in MESSAGES["Instruction"].split(", ")}
    skipped = {key.removeprefix("Instruction.") for key in SKIPPED if key.startswith("Instruction.")}
    read = {"name", "opcode", "id", "shape", "literal", *readers(), *EXTRAS}
    assert read | skipped == declared
    assert not read & skipped


def test_a_module_within_a_proto_is_found():
    wrapped = message_class("Wrapped")()
    wrapped.module.CopyFrom(small_module())
    wrapped.buffer_assignment = b"\x0a\x02\x08\x01"
    check(read_protobuf(wrapped.SerializeToString()))


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "long" * 500])
def test_names_that_would_spoil_a_message_are_refused(name: str):
    module = small_module()
    module.computations[1].instructions[3].name = name
    with pytest.raises(InvalidGraph, match="cannot be a name") as raised:
        read_protobuf(module.SerializeToString())
    assert str(raised.value).isprintable()


def test_names_that_repeat_are_told_apart():
    module = small_module()
    for instruction in module.computations[1].instructions:
        instruction.name = "same"
    graph = read_protobuf(module.SerializeToString())
    check(graph)
    assert len({node.id for node in graph.nodes}) == len(graph.nodes)


def test_a_huge_shape_costs_nothing():
    module = small_module()
    module.computations[1].instructions[9].shape.dimensions[:] = [2**31] * 40
    start = time.process_time()
    with pytest.raises(InvalidGraph, match="impossible shape"):
        read_protobuf(module.SerializeToString())
    assert time.process_time() - start < 0.5


def test_many_instructions_take_linear_time():
    module = message_class("Module")(name="m", entry_name="main", entry=1)
    main = module.computations.add(name="main", id=1, root=20_000)
    _add(main, 0, "parameter", (4,))
    for number in range(1, 20_001):
        _add(main, number, "negate", (4,), operands=[number - 1])
    start = time.process_time()
    graph = read_protobuf(module.SerializeToString())
    assert len(graph.nodes) == 20_001
    assert time.process_time() - start < 10
