"""Proved chains and their certificates: of cases of the corpus, and of a stack of equal layers."""

from dataclasses import dataclass

from scalify_cases import load_pair

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import SINGLE, Mesh, groups_along
from scalify.partition import computed, partition, segments
from scalify.prove.certificate import Certificate
from scalify.prove.chain import Chain, prove_chain
from scalify.prove.check import certified as certified_chain
from scalify.prove.engine import Budget
from scalify.relate.model import Relations
from scalify.relate.relate import relate


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """Two programs, the relations assumed of them, and the certificate of their proof."""

    baseline: Graph
    candidate: Graph
    relations: Relations
    certificate: Certificate


def certified(baseline: Graph, candidate: Graph, relations: Relations) -> Certified | None:
    """The proof of two programs, region by region or else at once; None if there is none."""
    chain = _chain(baseline, candidate, relations)
    if not chain.is_complete:
        return None
    certificate, problems = certified_chain(chain, baseline, candidate, relations)
    if problems:
        raise AssertionError(f"what was proved does not replay: {problems}")
    return Certified(baseline=baseline, candidate=candidate, relations=relations, certificate=certificate)


def certified_case(name: str) -> Certified | None:
    """A case of the corpus."""
    pair = load_pair(name)
    return certified(pair.baseline, pair.candidate, pair.relations())


def _chain(baseline: Graph, candidate: Graph, relations: Relations) -> Chain:
    parts = partition(baseline, candidate)
    chain = prove_chain(baseline, candidate, parts, relations, Budget(), memo=True)
    if chain.is_complete:
        return chain
    whole = segments(computed(baseline), (), baseline), segments(computed(candidate), (), candidate)
    return prove_chain(baseline, candidate, whole, relations, Budget(), memo=False)


def certified_layers(count: int = 7) -> Certified:
    """A stack of layers, on one device and on two ranks: equal layers share a proof."""
    baseline, candidate = layers(count, SINGLE), layers(count, Mesh(axes=(("tp", 2),)))
    found = certified(baseline, candidate, relate(baseline, candidate, None))
    if found is None:
        raise AssertionError("the layers should be proved")
    return found


def layers(count: int, mesh: Mesh) -> Graph:
    """Norm, gated projections, sum over ranks, residual: tall enough to be cut."""
    build = GraphBuilder("layers", mesh=mesh)
    x = build.input("x", "f32", (6, 8))
    for number in range(count):
        with build.scope(f"layers.{number}"):
            x = _layer(build, x, number)
    build.output("y", x)
    return build.graph()


def _layer(build: GraphBuilder, x: NodeId, number: int) -> NodeId:
    part = 12 // build.mesh.size
    up, gate = (
        build.input(f"layers.{number}.{name}", "f32", (8, part), role="parameter") for name in ("up", "gate")
    )
    down = build.input(f"layers.{number}.down", "f32", (part, 8), role="parameter")
    scale = build.input(f"layers.{number}.norm", "f32", (8,), role="parameter")
    normal = build.add("rms_norm", x, scale, axes=(1,), eps=1e-5)
    hidden = build.add("mul", *(build.add("einsum", normal, w, spec="ab,bc->ac") for w in (up, gate)))
    for op in ("tanh", "neg", "exp", "neg", "tanh", "abs", "neg", "tanh"):
        hidden = build.add(op, hidden)
    total = build.add("einsum", hidden, down, spec="ac,cb->ab")
    if build.mesh.size > 1:
        total = build.add("all_reduce", total, kind="sum", groups=groups_along(build.mesh, ("tp",)))
    return build.add("add", x, total)
