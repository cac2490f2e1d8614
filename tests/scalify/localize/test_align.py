"""Counterparts: by source, by operands, by op, and where they are inherited."""

from scalify_cases import Program

from scalify.ir.graph import Graph, NodeId, Site
from scalify.localize.align import Alignment, align, common, rising

SAME = (Site("model.py", 3, "forward"), Site("layer.py", 8, "forward"), Site("norm.py", 5, "forward"))


def _aligned(baseline: Graph, candidate: Graph) -> Alignment:
    entering = {node.id: node.id for node in candidate.inputs()}
    return align(baseline.nodes, candidate.nodes, entering)


def test_the_same_lines_are_counterparts_and_sure() -> None:
    def program(turn: tuple[int, ...]) -> Graph:
        p = Program()
        x = p.add("neg", p.input("x", "f32", (4, 4)), site=SAME[-1], stack=SAME, id="neg")
        p.output("y", p.add("transpose", x, perm=turn, site=SAME[-1], stack=SAME, id="turned"))
        return p.graph()

    found = _aligned(program((0, 1)), program((1, 0)))
    assert found.counterpart[NodeId("turned")] == "turned"
    assert {"neg", "turned"} <= found.sure


def test_equal_lines_of_several_layers_stay_in_order() -> None:
    def program(extra: bool) -> Graph:
        p = Program()
        x = p.input("x", "f32", (4, 4))
        if extra:
            x = p.add("abs", x, id="first")
        for layer in range(3):
            x = p.add("neg", x, site=SAME[0], stack=SAME, id=f"neg.{layer}")
        p.output("y", x)
        return p.graph()

    found = _aligned(program(extra=False), program(extra=True)).counterpart
    assert [found[NodeId(f"neg.{layer}")] for layer in range(3)] == ["neg.0", "neg.1", "neg.2"]


def test_operands_decide_between_equal_ops() -> None:
    def program(swapped: bool) -> Graph:
        p = Program()
        names = ("q", "k")
        weights = {name: p.input(name, "f32", (4, 4)) for name in names}
        made = {
            name: p.add("exp", weights[name], id=f"of_{name}")
            for name in (reversed(names) if swapped else names)
        }
        p.output("y", p.add("add", made["q"], made["k"]))
        return p.graph()

    found = _aligned(program(swapped=False), program(swapped=True)).counterpart
    assert (found[NodeId("of_q")], found[NodeId("of_k")]) == ("of_q", "of_k")


def test_what_was_put_in_between_inherits() -> None:
    p, q = Program(), Program(tp=2)
    x, y = p.input("x", "f32", (4, 4)), q.input("x", "f32", (4, 4))
    p.output("y", p.add("exp", p.product("ij,jk->ik", x, x)))
    part = q.add("all_reduce", q.product("ij,jk->ik", y, y), groups=q.groups(), id="summed")
    q.output("y", q.add("exp", q.shaped(part, 4, 4), id="last"))
    found = _aligned(p.graph(), q.graph())
    assert found.counterpart[NodeId("summed")] == "einsum_1"
    assert NodeId("summed") in found.inherited
    assert found.counterpart[NodeId("last")] == "exp_2"


def test_an_edited_op_meets_what_it_was() -> None:
    def program(op: str) -> Graph:
        p = Program()
        x = p.input("x", "f32", (4,))
        p.output("y", p.add("exp", p.add(op, p.add("sin", x), p.add("cos", x), id="edited")))
        return p.graph()

    assert _aligned(program("sub"), program("add")).counterpart[NodeId("edited")] == "edited"


def test_constants_are_aligned_by_who_reads_them() -> None:
    def program(value: float) -> Graph:
        p = Program()
        x = p.add("mul", p.input("x", "f32", (4,)), 3.0)
        p.output("y", p.add("div", x, p.add("constant", id="d", dtype="f32", shape=(), data=(value,))))
        return p.graph()

    assert _aligned(program(8.0), program(3.0)).counterpart[NodeId("d")] == "d"


def test_the_longest_rising_part() -> None:
    pairs = [(4, 0), (1, 1), (2, 2), (9, 3), (3, 4)]
    assert rising(pairs) == [(1, 1), (2, 2), (3, 4)]
    assert rising([]) == []


def test_common_places_are_in_order_on_both_sides() -> None:
    one, other = list("xabcab"), list("abxcab")
    found = common(one, other)
    assert all(one[a] == other[b] for a, b in found)
    assert found == sorted(found) == sorted(found, key=lambda pair: pair[1])
    assert len(found) >= 3
