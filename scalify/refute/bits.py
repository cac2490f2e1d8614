"""Bits that follow from a key and an element's number alone: the same on every machine, in any order.

What a witness holds is never stored where it is long; it is made again from these. So nothing here may ever
change without another version of the witness file. The mixing function is SplitMix64 (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014).
"""

from hashlib import sha256
from math import prod

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


def signed(key: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Real numbers between -1 and 1, of at least a quarter: sums of several hardly ever cancel."""
    words = bits(key, np.arange(prod(shape)))
    sizes = 0.25 + 0.75 * (words >> np.uint64(12)).astype(np.float64) / 2.0**52
    return (np.where(words & np.uint64(1), 1.0, -1.0) * sizes).reshape(shape)
