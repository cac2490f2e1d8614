"""Write the graph of the user's own model to a file.

``target`` names a build function. On one device it takes nothing, on a mesh ``(rank, groups)``, groups by
axis name; it returns ``(module_or_function, args)`` or ``(module_or_function, args, kwargs)``. Modules and
inputs on the meta device will do: no weight is looked at. On a mesh every rank is captured in turn in this
process, behind PyTorch's fake process group, and the ranks are merged into one graph. Where they differ in
more than where their shards start (uneven shards), their programs stand in it side by side.

It may return a function of JAX in the same way, with arrays or ``jax.ShapeDtypeStruct`` for its arguments.
The mesh is then that of the function's own ``shard_map``, and none is given.

What is written: on one device, and with ``per_rank``, an archive of torch.export (without weights) that
torch.export.load reads too; else, and wherever there are gradients, a graph as text.
"""

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch.export import ExportedProgram

from scalify.capture.differentiation import differentiation
from scalify.capture.exported import export, program_of
from scalify.capture.failure import NotThroughPyTorch
from scalify.capture.fake_ranks import as_rank
from scalify.capture.fx import pure_operators
from scalify.capture.in_place import meets_in_place
from scalify.capture.jax_functions import is_jax, of_jax
from scalify.capture.partitions import Members, partitions
from scalify.capture.target import Build, Built, built, is_distributed_tensor, load_build
from scalify.capture.traced import traced
from scalify.errors import CaptureFailed, InvalidGraph
from scalify.ir.graph import Graph
from scalify.ir.mesh import SINGLE, Groups, Mesh
from scalify.ir.text import save
from scalify.load.together import together
from scalify.load.torch_export.beside import MEMBER, Beside, as_json
from scalify.load.torch_export.program import Program
from scalify.load.torch_export.translate import translate

Progress = Callable[[int, int], None]


def capture(
    target: str,
    output: Path,
    *,
    mesh: Mesh = SINGLE,
    per_rank: bool = False,
    backward: bool = False,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> tuple[Path, ...]:
    """Capture a build function's program; the files that were written. ``backward``: with gradients.

    ``tell`` hears how it was captured, where that was not in the usual way.
    """
    build = load_build(target)
    name = target.rpartition(":")[2]
    if backward and per_rank:
        raise CaptureFailed("gradients have no archive per rank", hint="capture without --per-rank")
    if mesh.size == 1 and not backward:
        answer = build()
        if not is_jax(answer):
            return (_write_single(built(answer), output, name, tell),)
        save(of_jax(answer, name), output)
        return (output,)
    if per_rank:
        return _write_ranks(build, output, name, mesh, progress)
    graph = captured(build, name=name, mesh=mesh, backward=backward, progress=progress)
    _save(graph, output, tell)
    return (output,)


def captured(
    build: Build,
    *,
    name: str,
    mesh: Mesh = SINGLE,
    backward: bool = False,
    progress: Progress | None = None,
) -> Graph:
    """The graph of what a build function returns, for all ranks of the mesh at once.

    ``backward``: gradients are outputs too, see ``scalify.capture.gradients``.
    """
    if mesh.size == 1:
        answer = build()
        if is_jax(answer) and backward:
            raise CaptureFailed(
                "gradients of a function of JAX are a function of their own", hint="capture jax.grad of it"
            )
        if is_jax(answer):
            return of_jax(answer, name)
        return translate(_program(built(answer), name, SINGLE, backward))
    programs: dict[int, Program] = {}
    groups: dict[str, Members] = {}
    for rank in range(mesh.size):
        with as_rank(mesh, rank) as membership:
            program = _program(built(build(rank, membership.groups)), name, mesh, backward)
            groups |= membership.known()
        if programs:
            # Draws of random numbers at one place of the ranks' programs are one node.
            program = replace(program, origin=programs[0].origin)
        programs[rank] = next((known for known in programs.values() if known == program), program)
        if progress is not None:
            progress(rank + 1, mesh.size)
    _check_groups(programs.values(), groups, found := partitions(mesh, groups))
    graphs = _translated(programs, found)
    try:
        return together(graphs, mesh)
    except InvalidGraph as error:
        raise CaptureFailed(
            str(error), hint="capture with --per-rank to have each rank's own graph in a file"
        ) from error


def _check_groups(
    programs: Iterable[Program], known: Mapping[str, Members], found: Mapping[str, Groups]
) -> None:
    """Collectives within a group that has no like: of what else there is of its size, or left over."""
    for call in (call for program in programs for call in program.calls):
        name = call.arguments.get("group_name")
        if isinstance(name, str) and name in known and name not in found:
            members = ", ".join(map(str, known[name]))
            at = f" (at {call.stack[-1].file}:{call.stack[-1].line})" if call.stack else ""
            raise CaptureFailed(
                f"{call.name} is within a group of ranks {members}, which with groups like it does not "
                f"cut up all ranks{at}",
                hint="make such groups one after the other, all of one size, for every rank",
            )


def _translated(programs: Mapping[int, Program], groups: Mapping[str, Groups]) -> dict[int, Graph]:
    """Of ranks that run the same program the same object."""
    graphs: dict[int, Graph] = {}
    for rank, program in programs.items():
        same = next((graphs[other] for other in graphs if programs[other] is program), None)
        graphs[rank] = translate(replace(program, groups=groups)) if same is None else same
    return graphs


def _program(module: Built, name: str, mesh: Mesh, backward: bool) -> Program:
    """What a rank runs. How its groups cut up the mesh is known when all ranks have told of them."""
    if backward or _is_sharded(module):
        return traced(module, name=name, mesh=mesh, backward=backward)
    exported = _exported(module)
    if isinstance(exported, ExportedProgram):
        return program_of(exported, name=name, mesh=mesh)
    try:
        return traced(module, name=name, mesh=mesh, differentiates=exported is None or mesh.size > 1)
    except NotThroughPyTorch as error:
        raise exported or error from error


def _exported(module: Built) -> ExportedProgram | CaptureFailed | None:
    """None where only tracing sees what the module does: its gradients, and what ranks write in place."""
    with differentiation() as noticed:
        try:
            exported = export(module)
        except CaptureFailed as error:
            return None if noticed.happened else error
    return None if noticed.happened or meets_in_place(exported) else exported


def _is_sharded(module: Built) -> bool:
    leaves = [*module.module.parameters(), *module.module.buffers(), *module.args, *module.kwargs.values()]
    return any(is_distributed_tensor(leaf) for leaf in leaves)


def _save(graph: Graph, output: Path, tell: Callable[[str], None] | None) -> None:
    save(graph, output)
    if tell is not None:
        for note in graph.notes:
            tell(note)


def _write_single(module: Built, output: Path, name: str, tell: Callable[[str], None] | None) -> Path:
    if _is_sharded(module):
        raise CaptureFailed("the module holds DTensors but there is no mesh", hint="say --mesh tp=4")
    exported = _exported(module)
    if isinstance(exported, ExportedProgram):
        _write(exported, output, Beside(name=name))
    else:
        _save(translate(_program(module, name, SINGLE, False)), output, tell)
    return output


def _write_ranks(
    build: Build, output: Path, name: str, mesh: Mesh, progress: Progress | None
) -> tuple[Path, ...]:
    paths: list[Path] = []
    for rank in range(mesh.size):
        path = output.with_name(f"{output.stem}.rank{rank}{output.suffix}")
        with as_rank(mesh, rank) as membership:
            module = built(build(rank, membership.groups))
            if _is_sharded(module):
                raise CaptureFailed(
                    "a module of DTensors has no archive per rank", hint="capture it without --per-rank"
                )
            exported = _exported(module)
            if isinstance(exported, CaptureFailed):
                raise exported
            if exported is None:
                raise CaptureFailed(
                    "a module that asks for gradients, or sends and receives, has no archive per rank",
                    hint="capture it without --per-rank",
                )
            known = Beside(mesh=mesh, rank=rank, groups=membership.partitions(), name=name)
            _write(exported, path, known)
        paths.append(path)
        if progress is not None:
            progress(rank + 1, mesh.size)
    return tuple(paths)


def _write(exported: ExportedProgram, path: Path, beside: Beside) -> None:
    """To a temporary name first: a capture that dies leaves no half file."""
    partial = path.with_name(path.name + ".partial.pt2")
    with _weightless(exported):
        known = replace(beside, pure=pure_operators(exported.graph_module))
        extra = {MEMBER.removeprefix("extra/"): json.dumps(as_json(known))}
        torch.export.save(exported, partial, extra_files=extra)
    partial.replace(path)


@contextmanager
def _weightless(exported: ExportedProgram) -> Generator[None]:
    """Parameters and persistent buffers as their descriptions only: a proof looks at none of them."""
    kept = dict(exported.state_dict)
    for label, tensor in kept.items():
        described = tensor.detach().to("meta")
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        exported.state_dict[label] = torch.nn.Parameter(described, False) if is_parameter else described
    try:
        yield
    finally:
        exported.state_dict.update(kept)
