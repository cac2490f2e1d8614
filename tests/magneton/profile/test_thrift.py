"""Thrift from an enemy: bounded by its own bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.profile.thrift import Malformed, Reader


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@given(st.integers(0, 2**64 - 1))
def test_numbers_of_64_bits_are_read(number: int) -> None:
    reader = Reader(varint(number) + b"rest")
    assert reader.varint() == number
    assert reader.data[reader.position :] == b"rest"


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_are_read(number: int) -> None:
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    assert Reader(b"\x16" + varint(zigzag) + b"\0").struct() == {1: number}


def test_a_struct_of_every_type() -> None:
    data = bytes.fromhex(
        "11"  # field 1: true
        "12"  # field 2: false
        "13 07"  # field 3: a byte
        "14 03"  # field 4: -2 as i16
        "17 000000000000f83f"  # field 5: 1.5
        "18 02 6869"  # field 6: "hi"
        "19 35 02 04 06"  # field 7: a list of three i32
        "1c 15 02 00"  # field 8: a struct
        "19 21 01 02"  # field 9: a list of two booleans
        "05 28 0e"  # field 20, in the long form: 7
        "00"
    )
    assert Reader(data).struct() == {
        1: True,
        2: False,
        3: 7,
        4: -2,
        5: 1.5,
        6: b"hi",
        7: [1, 2, 3],
        8: {1: 1},
        9: [True, False],
        20: 7,
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut short"),
        (b"\x15", "cut short"),
        (b"\x18\x7fabc", "cut short"),
        (b"\x18" + b"\xff" * 9 + b"\x01", "cut short"),
        (b"\x15" + b"\xff" * 11, "more than 64 bits"),
        (b"\x19\xf5" + varint(2**31), "a list longer than the data"),
        (b"\x1c" * 5000, "nested too deeply"),
        (b"\x19\x19" * 5000, "nested too deeply"),
        (b"\x1b\x00\x00", "an unknown type"),
        (b"\x15\x02\x05\x02\x02\x00", "a field twice"),
    ],
)
def test_what_is_no_struct_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        Reader(data).struct()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_struct_or_refused(data: bytes) -> None:
    reader = Reader(data)
    try:
        reader.struct()
    except Malformed:
        return
    assert reader.position <= len(data)
