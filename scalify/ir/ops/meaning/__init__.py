"""What every op means in NumPy, in exact-enough arithmetic: the yardstick of rules, passes and verdicts.

Values are stored as float64, int64, bool or complex128, whatever the graph declares; the type rule has
been checked before a meaning is asked, so none of these functions checks shapes again.
"""
