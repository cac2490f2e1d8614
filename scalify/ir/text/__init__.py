"""Graphs as text, one node a line, for people to read and for files that end in ``.scg``::

    scalify graph 1
    name "mlp"
    mesh "tp"=2
    site 0 = "model.py" 12 "forward"
    stack 0 = 0
    %x = input() {name = "x", role = "input"} : f32[8] @0 via 0 in "model.mlp"
    %y = slice(%x) {starts = [<0 + 4*digit(1, 2)>], limits = [<4 + 4*digit(1, 2)>], steps = [1]} : f32[4]
    output "y" = %y

A graph that is unrolled over ranks has no mesh but a line ``unrolled 4``. A line ``note "..."`` is one of
the graph's notes.
``@`` is the node's site, ``via`` its stack, ``in`` its scope; each is left out where there is none. Sites
and stacks are numbered where they first occur. ``<b + f*digit(s, n)>`` is b + f * (rank // s % n). Floats
are Python's shortest exact form; strings are JSON's. Printing and parsing are each other's inverse, and
parsing runs nothing and takes time linear in the text, which is bounded in every direction.
"""

from scalify.ir.text.parser import load, parse
from scalify.ir.text.printer import print_lines, save, to_text

__all__ = ["load", "parse", "print_lines", "save", "to_text"]
