"""The algebra of index maps: how the elements of one tensor lie in another.

Reshapes, transposes, slices, broadcasts, shards and gathers over ranks are all index maps; this stage
composes them, inverts them where they are invertible, and says whether two are the same. It knows
nothing of graphs.
"""
