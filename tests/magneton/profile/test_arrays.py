"""Outputs from an enemy: never unpickled, never larger than their bytes."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from archives import members_of, packed, refusal
from profiles import small_profile

from magneton.errors import InvalidProfile
from magneton.profile.arrays import decode_array, encode_array


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npy_with_header(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def header(descr: str = "'<f4'", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


class Trap:
    """Unpickling it would leave a trace."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return _sprung, ("unpickled",)


def _sprung(_text: str) -> None:
    raise AssertionError("a pickle from a file was run")


HOSTILE = {
    "object dtype": npy(np.array([{"a": 1}], dtype=object)),
    "pickle behind an object dtype": npy(np.array([Trap()], dtype=object)),
    "a bare pickle": pickle.dumps([1, 2, 3]),
    "structured dtype": npy(np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")])),
    "text dtype": npy(np.array(["abc"])),
    "void dtype": npy(np.zeros(2, dtype="V8")),
    "dates": npy(np.zeros(2, dtype="datetime64[s]")),
    "big-endian": npy(np.zeros(2, dtype=">f4")),
    "huge shape": npy_with_header(header(shape="(999999999999999999,)"), bytes(8)),
    "overflowing shape": npy_with_header(header(shape=f"({', '.join(['4294967296'] * 4)})"), b""),
    "huge empty shape": npy_with_header(header(shape="(0, 999999999999, 999999999999)")),
    "negative shape": npy_with_header(header(shape="(-1,)"), bytes(4)),
    "too many dimensions": npy_with_header(header(shape=f"({', '.join(['1'] * 33)})"), bytes(4)),
    "fewer bytes than the shape": npy_with_header(header(shape="(3,)"), bytes(8)),
    "more bytes than the shape": npy_with_header(header(shape="(1,)"), bytes(8)),
    "an expression as a shape": npy_with_header(header(shape="(10**9,)"), bytes(8)),
    "a call in the header": npy_with_header("__import__('os').system('true')"),
    "deep nesting in the header": npy_with_header("(" * 900),
    "a long header": npy_with_header(header() + " " * 2000, bytes(8)),
    "a header longer than the file": b"\x93NUMPY\x01\x00\xff\xff{",
    "another version": b"\x93NUMPY\x03\x00\x10\x00" + bytes(16),
    "cut short": b"\x93NUM",
    "empty": b"",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_arrays_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidProfile, match=r"^output 'prefill\.logits' "):
        decode_array("prefill.logits", data)


def test_a_pickle_in_a_profile_is_refused_in_one_line(tmp_path: Path) -> None:
    members = members_of(small_profile(), tmp_path)
    message = refusal(packed({**members, "outputs/0.npy": npy(np.array([Trap()], dtype=object))}), tmp_path)
    assert message.startswith("output 'prefill.logits'")


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3)])
def test_plain_arrays_come_back_to_the_last_bit(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    found = decode_array("x", encode_array("x", array))
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, shape, array.tobytes())


def test_what_numpy_saves_in_columns_first_loads() -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(decode_array("x", npy(array)), array)


def test_not_a_number_is_a_number_here() -> None:
    """Outputs are what the model gave, whatever that is."""
    assert np.isnan(decode_array("x", encode_array("x", np.array([np.nan])))).all()


def test_a_loaded_array_cannot_be_changed() -> None:
    found = decode_array("x", encode_array("x", np.zeros(2)))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1
