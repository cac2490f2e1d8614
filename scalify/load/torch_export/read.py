"""Read one file that torch.export or ``scalify capture`` wrote."""

from pathlib import Path

from scalify.ir.graph import Graph
from scalify.load.torch_export.archive import Archive
from scalify.load.torch_export.beside import Beside, beside
from scalify.load.torch_export.fields import mapping
from scalify.load.torch_export.program import Program
from scalify.load.torch_export.schema import Reader
from scalify.load.torch_export.signature import parameters, results
from scalify.load.torch_export.translate import translate


def read(path: Path) -> Graph:
    """The graph in an archive. Of a rank program this is what that one rank runs."""
    return translate(read_program(path)[0])


def read_program(path: Path) -> tuple[Program, Beside]:
    """The calls in an archive, untranslated, and what was captured with them."""
    with Archive(path) as archive:
        model = archive.model()
        fields = archive.json(f"models/{model}.json")
        module = mapping(fields.get("graph_module"), "graph_module")
        reader = Reader(mapping(module.get("graph"), "graph"))
        signature = mapping(module.get("signature"), "signature")
        known = beside(archive)
        program = Program(
            name=known.name or path.name.split(".")[0],
            origin=archive.digest(f"models/{model}.json"),
            parameters=parameters(signature, reader, archive, model),
            calls=reader.calls(),
            results=results(signature, reader),
            mesh=known.mesh,
            groups=known.groups,
            pure=known.pure,
        )
    return program, known
