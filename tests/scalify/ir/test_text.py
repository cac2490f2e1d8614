"""The text form: exact both ways, and harmless to read."""

import math
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from scalify_graphs import graphs, soups

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, Site
from scalify.ir.mesh import Mesh, RankInt
from scalify.ir.text import load, parse, save, to_text

HEADER = "scalify graph 1\n"


@given(graphs())
def test_a_graph_is_read_back_as_it_was(graph: Graph) -> None:
    assert parse(to_text(graph)) == graph


@given(soups)
@settings(max_examples=300)
def test_whatever_a_graph_holds_is_read_back(graph: Graph) -> None:
    text = to_text(graph)
    again = parse(text)
    assert again == graph
    assert to_text(again) == text  # 1, 1.0 and True are equal but not the same


def test_a_graph_reads_as_promised() -> None:
    build = GraphBuilder("mlp", mesh=Mesh(axes=(("tp", 2),)))
    site = Site("model.py", 12, "forward")
    x = build.input("x", "f32", (8,), site=site)
    start, limit = (RankInt(base=base, terms=((1, 2, 4),)) for base in (0, 4))
    y = build.add(
        "slice",
        x,
        starts=(start,),
        limits=(limit,),
        steps=(1,),
        id="odd id",
        stack=(site,),
        scope="m",
        site=site,
    )
    build.output("y", y, alias="x")
    assert to_text(build.graph()).splitlines() == [
        "scalify graph 1",
        'name "mlp"',
        'mesh "tp"=2',
        'site 0 = "model.py" 12 "forward"',
        '%x = input() {name = "x", role = "input"} : f32[8] @0',
        "stack 0 = 0",
        '%"odd id" = slice(%x) {starts = [<0 + 4*digit(1, 2)>], limits = [<4 + 4*digit(1, 2)>], steps = [1]}'
        ' : f32[4] @0 via 0 in "m"',
        'output "y" = %"odd id" alias "x"',
    ]


def test_numbers_that_are_not_finite_are_read_back() -> None:
    build = GraphBuilder("g")
    build.output("c", build.constant((math.inf, -math.inf, -0.0, 1e-300, math.nan), "f64", (5,)))
    (constant,) = parse(to_text(build.graph())).nodes
    data = constant.attrs["data"]
    assert isinstance(data, tuple)
    assert repr(data) == "(inf, -inf, -0.0, 1e-300, nan)"


@given(graphs(max_nodes=3))
@settings(max_examples=20)
def test_a_saved_graph_is_loaded(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> None:
    path = tmp_path_factory.mktemp("graphs") / "g.scg"
    save(graph, path)
    assert load(path) == graph
    assert [file.name for file in path.parent.iterdir()] == ["g.scg"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%x", "'the end of the line'|the end of the line"),
        ("%x = input(", "the end of the line stands where"),
        ("x = input() : f32[]", "'x' stands where '%'"),
        ("%x = input() : f99[]", "'f99' stands where a dtype"),
        ("%x = input() : f32[1.5]", "'1.5' stands where an integer"),
        ("%x = input() : f32[4] extra", "'extra' stands where the end"),
        ("%x = input() : f32[4] @0", "no site 0"),
        ("%x = input() : f32[4] via 3", "no stack 3"),
        ("%x = input() {a = 1, a = 2} : f32[4]", "'a' is stated twice"),
        ('%x = input() {a = "unterminated} : f32[4]', "stands where a value"),
        ('%x = input() {a = "bad \\q"} : f32[4]', "stands where a string"),
        ("%x = input() {a = open} : f32[4]", "'open' stands where a value"),
        ("%x = input() {a = <1>} : f32[4]", "not a rank-dependent integer"),
        ("%x = input() {a = <1 + 2*digit(0, 2)>} : f32[4]", "not a rank-dependent integer"),
        (f"%x = input() {{a = {'9' * 5000}}} : f32[4]", "fewer digits"),
        (f"%x = input() {{a = {'[' * 50}{']' * 50}}} : f32[4]", "nested more than"),
        (f"%x = input() : f32[{','.join('1' * 99)}]", "more than 32 dimensions"),
        ("mesh tp=2", "'tp' stands where a string"),
        ('mesh "tp"=0', "at least one rank"),
        ('mesh "tp"=2 "tp"=2', "names of their own"),
        ('site 1 = "a" 1 "f"', "number 0 is due"),
        ("stack 0 = 0", "no site 0"),
        ("note recorded", "'recorded' stands where a string"),
        ('output "y" = x', "'x' stands where '%'"),
        ("\t%x = input() : f32[4]", "stands where"),
    ],
)
def test_a_malformed_line_is_refused_by_its_number(line: str, message: str) -> None:
    with pytest.raises(InvalidGraph, match=message) as error:
        parse(f'{HEADER}name "g"\n{line}\n')
    assert str(error.value).startswith("line 3: ")


@pytest.mark.parametrize("text", ["", "PK\x03\x04", "scalify graph 2\n", "scalify graph 1.0\n"])
def test_other_formats_and_versions_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedFormat):
        parse(text)


@pytest.mark.parametrize("tail", ['"' + "\\a" * 500_000, "[" * 1_000_000, "1" * 1_000_000, "%" * 1_000_000])
def test_a_hostile_line_costs_linear_time(tail: str) -> None:
    start_s = time.process_time()
    with pytest.raises(InvalidGraph):
        parse(f"{HEADER}%x = input() {{a = {tail}")
    assert time.process_time() - start_s < 2


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.scg"
    path.write_bytes(HEADER.encode() + b"\xff\xfe")
    with pytest.raises(InvalidGraph, match="line 2: it is not UTF-8"):
        load(path)


def test_a_line_without_an_end_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "g.scg"
    with path.open("wb") as file:
        file.write(HEADER.encode())
        file.truncate((1 << 24) + 4096)
    with pytest.raises(InvalidGraph, match="characters"):
        load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormat, match="there is no file"):
        load(tmp_path / "g.scg")


def test_a_file_with_an_ill_formed_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.scg"
    path.write_text(HEADER + "%y = neg(%x) : f32[4]\n")
    with pytest.raises(InvalidGraph, match=r"node 'y' \(neg\): operand 'x' is not a node before"):
        load(path)
