"""B17, other outcome: each rank's update is written at the first shard's place, its own stays as it was."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2)
    weight, grad = p.input("weight", "f32", (8,)), p.input("grad", "f32", (8,))
    updated = p.add("sub", p.own_piece(weight, 0), p.add("mul", p.own_piece(grad, 0), 0.125))
    written = p.add("update_slice", weight, updated, starts=(0,))  # suspect
    p.output("weight", p.gathered(p.own_piece(written, 0), 0))
    return p.graph()


PAIR = replace(load_pair("unknown/b17_first_shard_written_back"), candidate=candidate())
MISPLACED = "the gather of what was written wrongly is blamed"
