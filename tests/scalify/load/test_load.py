"""What a file is, is told by its content; what is no graph, or only a pickle, is refused with what to do."""

import io
import pickle
import zipfile
from pathlib import Path

import pytest

from scalify.errors import InvalidGraph, ScalifyError, UnsupportedFormat
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh, RankInt
from scalify.ir.text import to_text
from scalify.load import load, load_side
from scalify.load.sniff import Kind, kind_of

HLO = """HloModule tiny

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %y = f32[4]{0} negate(f32[4]{0} %x)
}
"""


def part(start: int, *, mesh: Mesh | None = None) -> Graph:
    build = GraphBuilder("part", mesh=mesh or Mesh())
    x = build.input("x", "f32", (8,))
    build.output("y", build.add("slice", x, starts=(start,), limits=(start + 4,), steps=(1,), id="piece"))
    return build.graph()


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def archive(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w") as target:
        for member in members:
            target.writestr(f"archive/{member}", "{}")
    return path


def test_the_suffix_says_nothing(tmp_path: Path):
    assert kind_of(written(tmp_path / "graph.pt", HLO)) is Kind.HLO_TEXT
    assert kind_of(written(tmp_path / "graph.hlo", to_text(part(0)))) is Kind.SCALIFY_TEXT
    assert kind_of(archive(tmp_path / "graph.txt", "models/model.json")) is Kind.TORCH_EXPORT
    assert kind_of(written(tmp_path / "graph.scg", b"\x0a\x04main\x12\x04main")) is Kind.HLO_PROTOBUF


def test_text_of_both_kinds_is_loaded(tmp_path: Path):
    assert [node.op for node in load(written(tmp_path / "a", HLO)).nodes] == ["input", "neg"]
    assert load(written(tmp_path / "b", to_text(part(2)))) == part(2)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_refused_and_never_loaded(tmp_path: Path, protocol: int):
    path = written(tmp_path / "model.pt", pickle.dumps({"weight": [1.0]}, protocol=protocol))
    with pytest.raises(UnsupportedFormat, match=r"model\.pt is a pickle") as raised:
        load(path)
    assert "scalify capture module.py:build -o graph.pt" in raised.value.hint


def test_what_torch_save_wrote_is_refused(tmp_path: Path):
    with pytest.raises(UnsupportedFormat, match=r"written by torch\.save") as raised:
        load(archive(tmp_path / "model.pt", "data.pkl", "version"))
    assert "scalify capture" in raised.value.hint


def test_a_torchscript_program_is_refused(tmp_path: Path):
    with pytest.raises(UnsupportedFormat, match="TorchScript"):
        load(archive(tmp_path / "model.pt", "data.pkl", "constants.pkl"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 and no more", "damaged zip"),
        (b"hello\n", "is text, but not a graph"),
        (b"\xff\xfe\x00\x01", "is not a graph in a format"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not a graph in a format"),
        (b"\x0a\x80\x80", "not a whole HLO module"),
    ],
)
def test_anything_else_is_one_line(tmp_path: Path, content: bytes, message: str):
    with pytest.raises(ScalifyError, match=message) as raised:
        load(written(tmp_path / "file", content))
    assert "\n" not in str(raised.value)
    assert raised.value.hint


def test_a_zip_without_a_graph_is_refused(tmp_path: Path):
    with pytest.raises(UnsupportedFormat, match="without a graph"):
        load(archive(tmp_path / "file.zip", "notes.txt"))


def test_a_missing_file_is_one_line(tmp_path: Path):
    with pytest.raises(InvalidGraph, match="No such file"):
        load(tmp_path / "absent")
    with pytest.raises(InvalidGraph, match="Is a directory"):
        load(tmp_path)


def test_a_message_names_the_file(tmp_path: Path):
    with pytest.raises(InvalidGraph, match=r"^wrong\.hlo: line 4"):
        load(written(tmp_path / "wrong.hlo", HLO.replace("parameter(0)", "parameter(zero)")))


def test_what_does_not_type_check_is_refused(tmp_path: Path):
    with pytest.raises(InvalidGraph, match=r"neg has shape \[4\], but \[5\] is stated"):
        load(written(tmp_path / "wrong.hlo", HLO.replace("= f32[4]{0} negate", "= f32[5]{0} negate")))


def test_a_zip_bomb_of_names_is_not_unpacked(tmp_path: Path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("archive/models/model.json", b"\0" * 10_000_000)
    with pytest.raises(ScalifyError):
        load(written(tmp_path / "bomb.pt", buffer.getvalue()))


def test_one_file_is_a_side(tmp_path: Path):
    assert load_side([written(tmp_path / "a", to_text(part(2)))]) == part(2)


def test_a_file_per_rank_is_one_program(tmp_path: Path):
    paths = [written(tmp_path / f"rank{rank}", to_text(part(4 * rank))) for rank in range(2)]
    merged = load_side(paths)
    assert merged.mesh == Mesh(axes=(("rank", 2),))
    (piece,) = (node for node in merged.nodes if node.op == "slice")
    assert piece.attrs["starts"] == (RankInt(base=0, terms=((1, 2, 4),)),)


def test_ranks_that_run_different_programs_are_named(tmp_path: Path):
    other = (
        to_text(part(0))
        .replace("slice(", "reverse(")
        .replace("{starts = [0], limits = [4], steps = [1]} : f32[4]", "{axes = [0]} : f32[8]")
    )
    paths = [written(tmp_path / "rank0", to_text(part(0))), written(tmp_path / "rank1", other)]
    with pytest.raises(InvalidGraph, match="ranks 0 and 1 run different programs: piece"):
        load_side(paths)


def test_a_side_of_no_files_is_refused():
    with pytest.raises(InvalidGraph, match="no file"):
        load_side([])
