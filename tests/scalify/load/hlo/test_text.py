"""HLO text: the same graph as from the serialized module, and one line for text that is not HLO."""

import time

import pytest
from hlo_edits import neuron_graph, parsed
from hlo_printer import printed
from hypothesis import given
from hypothesis import strategies as st

from scalify.errors import InvalidGraph, ScalifyError, UnsupportedFormat
from scalify.ir.check import check
from scalify.ir.graph import Graph, Node, Site
from scalify.ir.mesh import Mesh
from scalify.load.hlo import read_protobuf, read_text

STEP = """HloModule jit_step, is_scheduled=true, input_output_alias={ {1}: (2, {}, may-alias) }, \
entry_computation_layout={(f32[8,16]{1,0}, /*index=1*/f32[16,4]{1,0}, f32[8,4]{1,0})->(f32[8,4], f32[8,4])}, \
num_partitions=4

%sum.1 (a.2: f32[], b.3: f32[]) -> f32[] {
  %a.2 = f32[] parameter(0)
  %b.3 = f32[] parameter(1)
  ROOT %add.4 = f32[] add(f32[] %a.2, f32[] %b.3)
}

%relu (p.5: f32[8,4]) -> f32[8,4] {
  %p.5 = f32[8,4]{1,0} parameter(0)
  %c.6 = f32[] constant(0), metadata={op_name="jit(step)/relu" source_file="/model.py" source_line=3}
  %z.7 = f32[8,4]{1,0} broadcast(f32[] %c.6), dimensions={}
  ROOT %m.8 = f32[8,4]{1,0} maximum(f32[8,4]{1,0} %p.5, f32[8,4]{1,0} %z.7)
}

ENTRY %main.20 (x.9: f32[8,16], w.10: f32[16,4], old.11: f32[8,4]) -> (f32[8,4], f32[8,4]) {
  %x.9 = f32[8,16]{1,0} parameter(0), sharding={devices=[1,4]<=[4]}
  %w.10 = f32[16,4]{1,0} parameter(1), metadata={op_name="params[\\'w\\']"}
  %old.11 = f32[8,4]{1,0} parameter(2)
  %dot.12 = f32[8,4]{1,0} dot(f32[8,16]{1,0} %x.9, f32[16,4]{1,0} %w.10), lhs_contracting_dims={1}, \
rhs_contracting_dims={0}, operand_precision={highest,highest}
  %all-reduce.13 = f32[8,4]{1,0} all-reduce(f32[8,4]{1,0} %dot.12), channel_id=1, \
replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true, to_apply=%sum.1
  %fusion.15 = f32[8,4]{1,0} fusion(f32[8,4]{1,0} %all-reduce.13), kind=kLoop, calls=%relu, \
metadata={op_name="jit(step)/out" source_file="/model.py" source_line=9}
  ROOT %tuple.16 = (f32[8,4]{1,0}, f32[8,4]{1,0}) tuple(%fusion.15, %all-reduce.13)
}
"""


def one(instruction: str, *, parameters: str = "f32[4]{0}", header: str = "HloModule m") -> str:
    lines = [f"  %p{index} = {shape} parameter({index})" for index, shape in enumerate(parameters.split(";"))]
    return "\n".join((header, "", "ENTRY %main {", *lines, f"  ROOT {instruction}", "}", ""))


def node(text: str, id: str = "r") -> Node:
    graph = read_text(text)
    check(graph)
    (found,) = (node for node in graph.nodes if node.id == id)
    return found


@pytest.mark.parametrize("name", ["tp1_layer1", "tp2_layer1", "tp4_layer8"])
def test_a_printed_module_is_the_serialized_one(name: str):
    path = neuron_graph(name)
    from_text, from_bytes = read_text(printed(parsed(path))), read_protobuf(path.read_bytes())
    assert _shown(from_text) == _shown(from_bytes)
    assert from_text.outputs == from_bytes.outputs
    assert from_text.mesh == from_bytes.mesh


def _shown(graph: Graph) -> list[tuple[object, ...]]:
    return [(n.id, n.op, n.operands, dict(n.attrs), n.type, n.site, n.stack) for n in graph.nodes]


def test_a_module_is_read_whole():
    graph = read_text(STEP)
    check(graph)
    assert graph.name == "jit_step"
    assert graph.mesh == Mesh(axes=(("rank", 4),))
    by_id = {str(node.id): node for node in graph.nodes}
    assert by_id["dot.12"].attrs["spec"] == "ab,bc->ac"
    assert by_id["all-reduce.13"].attrs == {"kind": "sum", "groups": ((0, 2), (1, 3))}
    assert by_id["w.10"].scope == "params['w']"
    assert [(output.name, output.value, output.alias) for output in graph.outputs] == [
        ("output.0", "fusion.15/m.8", None),
        ("output.1", "all-reduce.13", "old.11"),
    ]


def test_inlined_instructions_have_lines_of_their_own_or_the_call_s():
    by_id = {str(node.id): node for node in read_text(STEP).nodes}
    assert by_id["fusion.15/c.6"].site == Site("/model.py", 3)
    assert by_id["fusion.15/m.8"].site == Site("/model.py", 9)


def test_frames_are_read_from_the_module_s_table():
    header = """HloModule m
FileNames
1 "/a.py"
2 "/b.py"
FunctionNames
1 "outer"
2 "inner"
FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=20 end_line=20 column=1 end_column=2}
StackFrames
1 {file_location_id=1}
2 {file_location_id=2 parent_frame_id=1}
"""
    found = node(one("%r = f32[4]{0} negate(%p0), metadata={stack_frame_id=2}", header=header))
    assert found.stack == (Site("/a.py", 10, "outer"), Site("/b.py", 20, "inner"))
    assert found.site == Site("/b.py", 20, "inner")


@pytest.mark.parametrize(
    ("type", "elements", "data"),
    [
        ("f32[]", "-1.5e-3", (-0.0015,)),
        ("f32[2]{0}", "{inf, -inf}", (float("inf"), float("-inf"))),
        ("s32[2,2]{1,0}", "{ {1, 2}, {3, 4} }", (1, 2, 3, 4)),
        ("pred[3]{0}", "{true, false, 1}", (True, False, True)),
        ("bf16[2]{0}", "{1.5, -0.1}", (1.5, -0.10009765625)),
        ("f16[1]{0}", "{65504}", (65504.0,)),
        ("f8e4m3fn[3]{0}", "{448, 0.001953125, -1.125}", (448.0, 0.001953125, -1.125)),
        ("f8e5m2[2]{0}", "{57344, 0.25}", (57344.0, 0.25)),
        ("u8[4]{0}", "{7, 7, 7, 7}", (7,)),
        ("s64[0]{0}", "{}", ()),
    ],
)
def test_constants_are_exact(type: str, elements: str, data: tuple[float, ...]):
    found = node(one(f"%r = {type} constant({elements})"))
    assert found.attrs["data"] == pytest.approx(data, rel=1e-7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected 'HloModule'"),
        ("HloModule", "expected the module's name"),
        ("HloModule m, mystery=1", "'mystery', which this release does not know"),
        ("HloModule m\n", "no computation is marked ENTRY"),
        (one("%r = f32[4]{0} negate(%q)"), "line 5: operand 'q' is not printed before it is used"),
        (one("%r = f32[4]{0} negate(%r)"), "operand 'r' is not printed before"),
        (one("%r = f32[4]{0} negate(%p0, %p0)"), "has 2 operands, not 1"),
        (one("%r = f32[4]{0} negate(%p0), wings=2"), "'wings', which this release does not know"),
        (one("%r = f32[4]{0} call(%p0), to_apply=%main"), "calls itself"),
        (one("%r = f32[4]{0} call(%p0), to_apply=%other"), "no computation 1 to call"),
        (one("%r = f32[<=4]{0} negate(%p0)"), "known only at run time"),
        (one("%r = f33[4]{0} negate(%p0)"), "no element type 'f33'"),
        (one("%r = s4[4]{0} convert(%p0)"), "element type s4"),
        (one("%r = f32[4]{0} constant({1, 2, 3})"), "as many elements"),
        (one("%r = f32[4]{0} constant({...})"), "printed without its elements"),
        (one("%r = f32[4]{0} constant({1, {2, 3}, 4})"), "not an array of 1 dimensions"),
        (one("%r = s8[1]{0} constant({300})"), "holds what is no s8"),
        (one('%r = f32[4]{0} custom-call(%p0), custom_call_target="x'), "not closed"),
        (one("%r = f32[4]{0} negate(%p0) /* never closed"), "not closed"),
        (one("%r = f32[4]{0} negate(%p0), metadata={op_name=" + "{" * 200), "not closed"),
        (one("%r = " + "(" * 5000 + "f32[]"), "nested too deep"),
        (one("%p0 = f32[4]{0} negate(%p0)"), "an instruction 'p0' already"),
        (one("%r = f32[4]{0} transpose(%p0), dimensions={3}"), "permutation"),
        (one("%r = f32[9,9]{1,0} reshape(%p0)"), "changes the number of elements"),
    ],
)
def test_wrong_text_is_one_line(text: str, message: str):
    with pytest.raises(ScalifyError) as raised:
        check(read_text(text))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@given(st.data())
def test_damaged_text_never_ends_otherwise(data: st.DataObject):
    text = list(STEP)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        action = data.draw(st.sampled_from(["drop", "double", "swap"]))
        match action:
            case "drop":
                del text[place : place + data.draw(st.integers(1, 40))]
            case "double":
                text[place:place] = text[place : place + data.draw(st.integers(1, 40))]
            case _:
                text[place] = data.draw(st.sampled_from(list('{}()[]=,%"/*0aZ- \n')))
        if not text:
            break
    try:
        check(read_text("".join(text)))
    except (InvalidGraph, UnsupportedFormat) as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("piece", ["/*/", '"\\', "{", "(", "%a.", "<=-", "f32["])
def test_time_is_linear_in_hostile_text(piece: str):
    start = time.process_time()
    with pytest.raises(ScalifyError):
        read_text("HloModule m, x=" + piece * 200_000)
    assert time.process_time() - start < 2
