"""Pairs that are equal over the reals: where one of them rounds more, and where it only rounds elsewhere."""

from collections.abc import Callable

import pytest

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import DType, Graph, NodeId
from scalify.ir.mesh import SINGLE, Mesh, groups_along
from scalify.precision.finding import Kind, PrecisionFinding
from scalify.precision.look import precision
from scalify.relate.relate import relate

ROWS, WIDE, HIDDEN = 4, 8, 16
TP = Mesh(axes=(("tp", 2),))
Body = Callable[["Program", NodeId], NodeId]


class Program(GraphBuilder):
    """Linear layers whose second weight is cut by rows over the ranks of the mesh, if there are any."""

    def cast(self, x: NodeId, dtype: DType) -> NodeId:
        return self.add("cast", x, dtype=dtype)

    def linear(self, x: NodeId, w: NodeId, dtype: DType) -> NodeId:
        return self.add("einsum", x, w, spec="bi,io->bo", dtype=dtype)

    def summed(self, x: NodeId) -> NodeId:
        if self.mesh is SINGLE:
            return x
        return self.add("all_reduce", x, kind="sum", groups=groups_along(self.mesh, ("tp",)))


def found(baseline: Graph, candidate: Graph) -> tuple[PrecisionFinding, ...]:
    relations = relate(baseline, candidate)
    assert not relations.undecided
    return precision(baseline, candidate, relations)


def kinds(baseline: Graph, candidate: Graph) -> list[Kind]:
    return [finding.kind for finding in found(baseline, candidate)]


def cut_layer(
    *, product: DType, terms: DType, total: DType, held: DType = "bf16", mesh: Mesh = SINGLE
) -> Graph:
    """``tanh(relu(x) down)``: the product in one format, cast, summed over ranks, cast again."""
    build = Program("layer", mesh=mesh)
    x = build.input("x", held, (ROWS, HIDDEN // mesh.size))
    down = build.input("down", held, (HIDDEN // mesh.size, WIDE), role="parameter")
    y = build.linear(build.add("relu", x), down, product)
    if terms != product:
        y = build.cast(y, terms)
    y = build.summed(y)
    if total != terms:
        y = build.cast(y, total)
    build.output("y", build.add("tanh", y))
    return build.graph()


def alone(body: Body, dtype: DType = "bf16") -> Graph:
    """What a body makes of one input on one device."""
    build = Program("body")
    build.output("y", body(build, build.input("x", dtype, (ROWS, WIDE))))
    return build.graph()


def test_a_sum_over_ranks_in_the_coarser_format_is_found_at_its_place():
    baseline = cut_layer(product="f32", terms="f32", total="f32")
    candidate = cut_layer(product="f32", terms="bf16", total="f32", mesh=TP)
    (finding,) = found(baseline, candidate)
    nodes = candidate.by_id()
    assert finding.kind is Kind.RANKS_SUM
    assert nodes[finding.candidate.node].op == "all_reduce"
    assert (finding.expected, finding.found) == ("f32", "bf16")
    assert finding.baseline is not None
    assert finding.baseline.op == "einsum"
    assert finding.text == (
        "this all_reduce sums over tp in bf16 where the baseline sums in f32: "
        "cast to f32 before it instead of after it"
    )


def test_the_error_of_both_sides_is_measured():
    baseline = cut_layer(product="f32", terms="f32", total="f32")
    (finding,) = found(baseline, cut_layer(product="f32", terms="bf16", total="f32", mesh=TP))
    assert finding.error is not None
    assert finding.error.baseline is not None
    assert finding.error.candidate is not None
    assert finding.error.baseline < 1e-6
    assert 1e-3 < finding.error.candidate < 1e-2


def test_terms_that_are_rounded_before_the_sum_are_found():
    baseline = cut_layer(product="f32", terms="f32", total="bf16")
    candidate = cut_layer(product="bf16", terms="f32", total="bf16", mesh=TP)
    assert kinds(baseline, candidate) == [Kind.ROUNDED_TERMS]


def test_a_gradient_is_called_one():
    def graph(terms: DType, mesh: Mesh) -> Graph:
        build = Program("gradient", mesh=mesh)
        x = build.input("x", "bf16", (ROWS // mesh.size, WIDE))
        dy = build.input("dy", "bf16", (ROWS // mesh.size, HIDDEN))
        dw = build.add("einsum", x, dy, spec="bi,bo->io", dtype="f32")
        dw = build.summed(build.cast(dw, terms) if terms != "f32" else dw)
        build.output("grad.w", build.cast(dw, "f32") if terms != "f32" else dw)
        return build.graph()

    (finding,) = found(graph("f32", SINGLE), graph("bf16", TP))
    assert finding.kind is Kind.RANKS_SUM
    assert finding.text.startswith("this gradient is summed over tp in bf16")


def handed_out(*, early: bool, mesh: Mesh = SINGLE) -> Graph:
    """A gradient in bf16 that is handed out in f32, cast before or after ranks add up."""
    build = Program("gradient", mesh=mesh)
    x = build.input("x", "bf16", (ROWS // mesh.size, WIDE))
    dy = build.input("dy", "bf16", (ROWS // mesh.size, HIDDEN))
    dw = build.add("einsum", x, dy, spec="bi,bo->io", dtype="bf16")
    wide = build.summed(build.cast(dw, "f32")) if early else build.cast(build.summed(dw), "f32")
    build.output("grad.w", wide)
    return build.graph()


def test_what_is_handed_out_in_the_finer_format_is_to_be_summed_in_it():
    baseline = handed_out(early=True)
    assert found(baseline, handed_out(early=True, mesh=TP)) == ()
    (finding,) = found(baseline, handed_out(early=False, mesh=TP))
    assert finding.kind is Kind.RANKS_SUM
    assert finding.text == (
        "this gradient is summed over tp in bf16 although its result is handed out in f32: "
        "cast to f32 before it instead of after it"
    )


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        (cut_layer(product="bf16", terms="bf16", total="bf16", mesh=TP), "the product rounds by itself"),
        (cut_layer(product="bf16", terms="f32", total="f32", mesh=TP), "the sum is in a finer format"),
        (cut_layer(product="f32", terms="f32", total="f32", mesh=TP), "everything is in a finer format"),
    ],
)
def test_tensor_parallelism_in_the_baselines_formats_is_no_finding(candidate: Graph, why: str):
    assert kinds(cut_layer(product="bf16", terms="bf16", total="bf16"), candidate) == [], why


def norm(x_dtype: DType) -> Body:
    def body(build: Program, x: NodeId) -> NodeId:
        wide = build.cast(x, x_dtype) if x_dtype != "bf16" else x
        mean = build.add("reduce", build.add("square", wide), kind="mean", axes=(1,), keepdims=True)
        normed = build.add(
            "mul", wide, build.add("rsqrt", build.add("add", mean, build.constant(1e-5, "f32")))
        )
        return build.cast(normed, "bf16")

    return body


def test_statistics_in_the_coarser_format_are_one_finding():
    (finding,) = found(alone(norm("f32")), alone(norm("bf16")))
    assert finding.kind is Kind.STATISTICS
    assert finding.text == "this mean is taken in bf16 where the baseline takes it in f32"
    assert found(alone(norm("bf16")), alone(norm("f32"))) == ()


def softmax(dtype: DType) -> Body:
    def body(build: Program, x: NodeId) -> NodeId:
        scores = build.cast(x, dtype) if dtype != "bf16" else x
        return build.cast(build.add("softmax", scores, axis=1), "bf16")

    return body


def test_a_softmax_in_the_coarser_format_is_found():
    assert kinds(alone(softmax("f32")), alone(softmax("bf16"))) == [Kind.STATISTICS]


def test_a_cast_may_stand_before_or_behind_what_only_moves_or_chooses():
    def before(build: Program, x: NodeId) -> NodeId:
        y = build.cast(build.add("exp", build.cast(x, "f32")), "bf16")
        y = build.add("relu", build.add("transpose", y, perm=(1, 0)))
        return build.add("exp", build.add("mul", y, build.constant(0.5, "bf16")))

    def behind(build: Program, x: NodeId) -> NodeId:
        y = build.add("transpose", build.add("exp", build.cast(x, "f32")), perm=(1, 0))
        y = build.add("mul", build.add("relu", y), build.constant(0.5, "f32"))
        return build.add("exp", build.cast(y, "bf16"))

    assert found(alone(before), alone(behind)) == ()
    assert found(alone(behind), alone(before)) == ()


def test_a_cast_before_a_sum_of_two_is_found_where_the_baseline_rounds_behind_it():
    def early(build: Program, x: NodeId) -> NodeId:
        wide = build.cast(x, "f32")
        one = build.cast(build.add("exp", wide), "bf16")
        return build.add("tanh", build.add("add", one, build.cast(build.add("sin", wide), "bf16")))

    def late(build: Program, x: NodeId) -> NodeId:
        wide = build.cast(x, "f32")
        total = build.add("add", build.add("exp", wide), build.add("sin", wide))
        return build.add("tanh", build.cast(total, "bf16"))

    events = found(alone(late), alone(early))
    assert {finding.kind for finding in events} == {Kind.ROUNDED}
    assert {finding.candidate.op for finding in events} == {"cast"}
    assert found(alone(early), alone(late)) == ()


def test_an_input_held_in_the_coarser_format_is_found():
    baseline = cut_layer(product="f32", terms="f32", total="f32", held="f32")
    findings = found(baseline, cut_layer(product="f32", terms="f32", total="f32", held="bf16", mesh=TP))
    assert [finding.kind for finding in findings] == [Kind.HELD, Kind.HELD]
    assert findings[1].text == "down is held in bf16 where the baseline reads it in f32"


def test_a_weight_that_both_round_before_use_is_no_finding():
    def graph(held: DType) -> Graph:
        build = Program("held")
        w = build.input("w", held, (WIDE, HIDDEN), role="parameter")
        x = build.input("x", "bf16", (ROWS, WIDE))
        build.output("y", build.linear(x, build.cast(w, "bf16") if held == "f32" else w, "bf16"))
        return build.graph()

    assert found(graph("f32"), graph("bf16")) == ()


def test_rounding_twice_is_found():
    def once(build: Program, x: NodeId) -> NodeId:
        return build.cast(build.add("exp", x), "f8e4m3")

    def twice(build: Program, x: NodeId) -> NodeId:
        return build.cast(build.cast(build.add("exp", x), "bf16"), "f8e4m3")

    (finding,) = found(alone(once, "f32"), alone(twice, "f32"))
    assert finding.kind is Kind.ROUNDED_TWICE
    assert finding.text == "rounded to bf16 here and to f8e4m3 after it; the baseline rounds only once"


def test_positions_in_a_coarse_format_are_found():
    def positions(dtype: DType) -> Body:
        def body(build: Program, x: NodeId) -> NodeId:
            counted = build.cast(build.add("iota", axis=1, shape=(ROWS, WIDE), dtype="i64"), dtype)
            return build.add("mul", x, build.cast(build.add("cos", counted), "f32"))

        return body

    findings = found(alone(positions("f32"), "f32"), alone(positions("bf16"), "f32"))
    assert [finding.kind for finding in findings] == [Kind.ROUNDED]
    assert findings[0].candidate.op == "cast"


def test_a_fused_norm_with_a_weight_of_another_dtype_is_ill_typed():
    def graph(weight: DType) -> Graph:
        build = Program("norm")
        x = build.input("x", "bf16", (ROWS, WIDE))
        w = build.input("w", weight, (WIDE,), role="parameter")
        build.output("y", build.add("rms_norm", x, w, axes=(1,), eps=1e-5, dtype="bf16"))
        return build.graph()

    assert kinds(graph("bf16"), graph("bf16")) == []
    assert kinds(graph("f32"), graph("f32")) == []
    (finding,) = found(graph("bf16"), graph("f32"))
    assert finding.kind is Kind.MIXED_NORM
    assert "ill-typed" in finding.text


def test_a_format_of_less_range_is_coarser_although_it_is_finer():
    def halves(dtype: DType) -> Body:
        return lambda build, x: build.add("exp", build.cast(build.add("sin", x), dtype))

    assert kinds(alone(halves("bf16"), "f32"), alone(halves("f16"), "f32")) == [Kind.ROUNDED]


def test_the_same_line_in_every_layer_is_one_finding():
    def layers(dtype: DType) -> Body:
        def body(build: Program, x: NodeId) -> NodeId:
            for _ in range(3):
                x = build.cast(build.add("softmax", build.cast(x, dtype), axis=1), "bf16")
            return x

        return body

    (finding,) = found(alone(layers("f32")), alone(layers("bf16")))
    assert finding.times == 3


def test_programs_in_one_format_have_no_findings():
    same = alone(softmax("f32"), "f32")
    assert found(same, same) == ()
