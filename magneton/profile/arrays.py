"""Declared outputs as ``.npy`` bytes. The header is matched against what NumPy writes, never evaluated."""

import io
import math
import re
import struct

import numpy as np

from magneton.errors import InvalidProfile
from magneton.profile.damage import damaged, quoted

MAX_OUTPUTS = 256
MAX_BYTES = 64 * 1024 * 1024
DTYPES = frozenset(
    ["|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]
)
MAX_MEMBER_BYTES = MAX_BYTES + 4096  # with its header

_PREFIX = struct.Struct("<6sBBH")  # magic, major, minor, length of the header
_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 1024
_MAX_DIMENSIONS = 32
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<|][a-z][0-9]{1,2})', 'fortran_order': (?P<fortran>False|True), "
    rb"'shape': \((?P<shape>[0-9]{1,18}, ?|[0-9]{1,18}(, [0-9]{1,18})+|)\), \} *\n"
)


def encode_array(name: str, array: np.ndarray) -> bytes:
    """Little-endian, in C order."""
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise InvalidProfile(
            f"output {quoted(name)} has dtype {array.dtype}, which a profile cannot hold",
            hint="convert it to an ordinary number type, for example float32",
        )
    if array.ndim > _MAX_DIMENSIONS:
        raise InvalidProfile(
            f"output {quoted(name)} has {array.ndim} dimensions; a profile holds at most {_MAX_DIMENSIONS}",
            hint="declare it in fewer dimensions",
        )
    if array.nbytes > MAX_BYTES:
        raise InvalidProfile(
            f"output {quoted(name)} takes {array.nbytes} bytes; a profile holds at most {MAX_BYTES} of one",
            hint="declare a smaller output, for example the last logits only",
        )
    file = io.BytesIO()
    np.lib.format.write_array(
        file, np.asarray(array, dtype=dtype, order="C"), version=(1, 0), allow_pickle=False
    )
    return file.getvalue()


def decode_array(name: str, data: bytes) -> np.ndarray:
    """A read-only array. Its size is known to agree with the bytes before anything is set aside."""
    if len(data) < _PREFIX.size:
        raise _damaged(name, "is cut short")
    magic, major, minor, length = _PREFIX.unpack_from(data)
    if magic != _MAGIC or (major, minor) != (1, 0):
        raise _damaged(name, "is not an .npy file of version 1.0")
    if length > _MAX_HEADER_BYTES:
        raise _damaged(name, f"declares a header of {length} bytes")
    start = _PREFIX.size + length
    found = _HEADER.fullmatch(data[_PREFIX.size : start])
    if found is None:
        raise _damaged(name, "has a header that NumPy does not write for a plain array")
    dtype_text = found["dtype"].decode("ascii")
    if dtype_text not in DTYPES:
        raise _damaged(name, f"has dtype {dtype_text!r}; only plain numbers are allowed")
    shape = tuple(int(size) for size in found["shape"].split(b",") if size.strip())
    dtype = np.dtype(dtype_text)
    _check_shape(name, shape, dtype.itemsize, len(data) - start)
    flat = np.frombuffer(data, dtype=dtype, offset=start)
    array = flat.reshape(shape, order="F" if found["fortran"] == b"True" else "C")
    return np.asarray(array, order="C")


def _check_shape(name: str, shape: tuple[int, ...], item_bytes: int, given_bytes: int) -> None:
    if len(shape) > _MAX_DIMENSIONS:
        raise _damaged(name, f"has {len(shape)} dimensions; at most {_MAX_DIMENSIONS} are allowed")
    if math.prod(size for size in shape if size) * item_bytes > MAX_BYTES:
        raise _damaged(name, "declares a shape that is too large")
    if math.prod(shape) * item_bytes != given_bytes:
        raise _damaged(name, "does not have as many bytes as its shape needs")


def _damaged(name: str, what: str) -> InvalidProfile:
    return damaged(f"output {quoted(name)} {what}")
