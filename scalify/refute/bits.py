"""Bits that follow from a key and an element's number alone: the same on every machine, in any order.

What a witness holds is never stored where it is long; it is made again from these. So nothing here may ever
change without another version of the witness file. The mixing function is SplitMix64 (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014).
"""

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def key_of(*parts: object) -> int:
    """A number of 64 bits for names and numbers."""
    text = "/".join(map(str, parts))
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little")


def bits(key: int, numbers: NDArray[np.integer]) -> Bits:
    """64 bits for each element, by its number in its tensor."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (numbers.astype(np.uint64) + np.uint64(1)) * _STEP
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        return z ^ (z >> np.uint64(31))


def below(words: Bits, count: int) -> NDArray[np.int64]:
    """Whole numbers 0 .. count-1."""
    return (words >> np.uint64(11)).astype(np.int64) % count
