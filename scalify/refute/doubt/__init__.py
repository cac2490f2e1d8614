"""Elements of which nothing can be said, and what depends on them.

Noise moves a result by a little where the program is continuous. Where it is not (a comparison, a whole
number made of a real one, an order), one bit of rounding decides; where an op has no value (a division by
zero, integers that wrap, rows written twice), frameworks differ. In: a program and its values. Out: for each
output, which elements hang on such a place.
"""

from scalify.refute.doubt.doubt import Doubts, doubts
from scalify.refute.doubt.jumps import Jumps
from scalify.refute.doubt.watch import Look, watching

__all__ = ["Doubts", "Jumps", "Look", "doubts", "watching"]
