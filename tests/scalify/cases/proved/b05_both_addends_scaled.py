"""B05 as it should be: both losses make up for the ranks that the scale counts."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(cp=2)
    main, more = p.input("main", "f32", (4, 3)), p.input("more", "f32", (4, 3))
    of_main = p.add("mul", p.total(main, 0), 2.0)
    of_more = p.add("mul", p.add("mul", p.total(more, 0), 0.5), 2.0)
    p.output("grad", p.add("div", p.over_ranks(p.add("add", of_main, of_more)), 2.0))
    return p.graph()


PAIR = replace(load_pair("unknown/b05_one_addend_not_scaled"), verdict="proved", candidate=candidate())
