"""What each node of the candidate holds against what it should hold: measured on given inputs.

Unlike a proof, values tell what *is* the same, whatever code computed it; and a right value can be put in the
place of a wrong one, to see whether that mends the outputs. ``scalify.localize.by_values`` puts it together.
"""
