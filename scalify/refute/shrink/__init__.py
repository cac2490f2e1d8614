"""The same two programs with shorter dimensions, where the given ones are too large to be run.

In: two graphs and their relations. Out: graphs of the same operations whose dimensions are divided by powers
of two, or None where that cannot be done. Whole numbers that are lengths shrink with these; constants such as
1/4096, windows and other bounds do not: what differs here is a reason to look, and no refutation.
"""

from scalify.refute.shrink.shrink import shrink

__all__ = ["shrink"]
