"""Read a Thrift struct in the compact encoding, as Parquet uses it for its footer and page headers.

Nothing is known here of what the fields mean: a struct becomes a mapping from field number to value.
Bytes may say anything; whatever they say takes no more than a small multiple of them in memory.
"""

import struct
from collections.abc import Callable, Mapping

Struct = Mapping[int, object]

_MAX_DEPTH = 10
# Numbers of types in the compact encoding; a boolean field is its own value.
_TRUE, _FALSE = 1, 2
_BYTE, _I16, _I32, _I64, _DOUBLE = 3, 4, 5, 6, 7
_BINARY, _LIST, _SET, _STRUCT = 8, 9, 10, 12


class Malformed(Exception):
    """The bytes are no such struct."""


class Reader:
    """Reads from ``data`` at ``position`` on; ``position`` moves behind what has been read."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position
        self._readers: Mapping[int, Callable[[int], object]] = {
            _BYTE: lambda _: self.take(1)[0],
            _I16: lambda _: self._zigzag(),
            _I32: lambda _: self._zigzag(),
            _I64: lambda _: self._zigzag(),
            _DOUBLE: lambda _: struct.unpack("<d", self.take(8))[0],
            _BINARY: lambda _: self.take(self.varint()),
            _LIST: self._list,
            _SET: self._list,
            _STRUCT: self.struct,
        }

    def struct(self, depth: int = 0) -> Struct:
        """Fields by number. A field twice, a map (Parquet has none) and too deep a nesting are refused."""
        fields: dict[int, object] = {}
        number = 0
        while head := self.take(1)[0]:
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else self._zigzag()
            if number in fields:
                raise Malformed("a field twice")
            fields[number] = kind == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind, depth + 1)
        return fields

    def varint(self) -> int:
        """An unsigned number of at most 64 bits."""
        result = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
        raise Malformed("a number of more than 64 bits")

    def _value(self, kind: int, depth: int) -> object:
        read = self._readers.get(kind)
        if read is None:
            raise Malformed("an unknown type")
        if depth > _MAX_DEPTH:
            raise Malformed("nested too deeply")
        return read(depth)

    def _list(self, depth: int) -> list[object]:
        head = self.take(1)[0]
        size, kind = head >> 4, head & 0x0F
        size = self.varint() if size == 15 else size
        if size > len(self.data) - self.position:  # every item takes a byte at least
            raise Malformed("a list longer than the data")
        return [self._item(kind, depth) for _ in range(size)]

    def _item(self, kind: int, depth: int) -> object:
        return self.take(1)[0] == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind, depth + 1)

    def _zigzag(self) -> int:
        encoded = self.varint()
        return (encoded >> 1) ^ -(encoded & 1)

    def take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise Malformed("cut short")
        piece = self.data[self.position : end]
        self.position = end
        return piece
