"""B09 as it should be: what every rank holds in full is summed by every rank for itself."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

_wrong = load_pair("unknown/b09_loss_of_gathered_logits")


def candidate() -> Graph:
    p = Program(tp=2)
    logits, target = (p.input(str(x.id), x.type.dtype, x.type.shape) for x in _wrong.candidate.inputs())
    rows, classes = p.type(logits).shape
    most = p.over_ranks(p.most(logits, 1), kind="max")
    total = p.total(p.add("exp", p.add("sub", logits, p.shaped(most, rows, 1))), 1)
    hit = p.add("eq", p.counter(1, rows, classes), p.shaped(target, rows, 1))
    of_target = p.total(p.add("where", hit, logits, 0.0), 1)
    p.output("loss", p.add("sub", p.add("add", p.add("log", total), most), of_target))
    return p.graph()


PAIR = replace(_wrong, verdict="proved", candidate=candidate())
