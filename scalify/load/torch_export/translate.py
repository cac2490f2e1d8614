"""A ``Program`` as a graph: every call looked up in the table of meanings, in order.

In: a Program. Out: a Graph that computes what it does. A call without a meaning is one ``opaque`` node
per result and, unless it is one of PyTorch's own pure operators, may have written to what it was given.
Nodes that no output depends on are left out; inputs stay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, Graph, Node, NodeId, Output, TensorType
from scalify.ir.ops import OPS
from scalify.load.messages import is_message
from scalify.load.torch_export.aliasing import (
    IGNORED,
    INLINED,
    PIECEWISE,
    RECEIVES,
    RESHAPED,
    UPDATES_STATISTICS,
    Sharing,
    draws,
    is_pure,
    shares,
)
from scalify.load.torch_export.any_dim import along_any_dim
from scalify.load.torch_export.batches import one_by_one
from scalify.load.torch_export.bodies import prefixed
from scalify.load.torch_export.canonical import text_of
from scalify.load.torch_export.emit import Emitter, Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.meaning import MEANINGS
from scalify.load.torch_export.memory import Memory
from scalify.load.torch_export.operation import Meaning, Operation, Outcome, Unmodelled
from scalify.load.torch_export.pairs import in_pairs
from scalify.load.torch_export.program import Argument, Body, Call, Parameter, Program, Ref, Value


def translate(program: Program) -> Graph:
    """The graph of a program."""
    return _Translation(in_pairs(program)).graph()


@dataclass(frozen=True, slots=True)
class _Target:
    """An operator's name taken apart: ``aten.add_.Tensor`` writes to its first argument."""

    base: str
    overload: str
    in_place: bool


def _target(name: str) -> _Target:
    namespace, _, rest = name.partition(".")
    operator, _, overload = rest.partition(".")
    if name in RECEIVES:
        return _Target(f"{namespace}.{operator}", overload, True)
    in_place = operator.endswith("_") and not operator.endswith("__")
    base = f"{namespace}.{operator[:-1] if in_place else operator}"
    return _Target(base, overload, in_place and name not in RESHAPED)


class _Translation:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._emit = Emitter(program.mesh)
        self._calls = tuple(one for call in program.calls for one in one_by_one(call))
        self._memory = Memory(self._emit, tracked=not all(map(self._only_reads, self._calls)))
        self._outputs: list[Output] = []
        self._labels: set[str] = set()

    def graph(self) -> Graph:
        for position, parameter in enumerate(self._program.parameters):
            self._take(parameter, position)
        for call in self._calls:
            self._call(call)
        self._give()
        nodes = tuple(self._emit.nodes.values())
        roots = tuple(output.value for output in self._outputs)
        return Graph(
            name=self._program.name,
            nodes=live(along_any_dim(nodes), (*roots, *_unused_collectives(nodes, roots))),
            outputs=tuple(self._outputs),
            mesh=self._program.mesh,
            notes=self._program.notes,
        )

    def _take(self, parameter: Parameter, position: int) -> None:
        self._emit.at(parameter.name)
        op = "input"
        label = self._unlike_others(parameter)
        attrs: Mapping[str, Attr] = {"name": label, "role": parameter.role, "position": position}
        if parameter.data is not None:
            op, attrs = "constant", {"data": parameter.data}
        elif parameter.digest is not None:
            op, attrs = "constant", {"digest": parameter.digest}
        value = Value(name=parameter.name, type=parameter.type, contiguous=parameter.contiguous)
        self._memory.new(value, self._emit.emit(op, declared=parameter.type, attrs=attrs))

    def _unlike_others(self, parameter: Parameter) -> str:
        """An argument may be called like a parameter."""
        label = parameter.label
        while label in self._labels:
            label = f"{parameter.role}.{label}"
        self._labels.add(label)
        return label

    def _give(self) -> None:
        """Results in order, then what was written to memory that came from outside."""
        updated: set[str] = set()
        for number, result in enumerate(self._program.results):
            if not isinstance(result.value, Ref):
                continue
            wire = self._memory.read(result.value.name)
            name = result.label or result.updates or f"output_{number}"
            self._outputs.append(Output(name=name, value=wire.id, alias=result.updates))
            updated.add(result.updates or "")
        for parameter in self._program.parameters:
            if self._memory.changed(parameter.name) and parameter.label not in updated:
                wire = self._memory.read(parameter.name)
                self._outputs.append(Output(name=parameter.label, value=wire.id, alias=parameter.label))

    def _call(self, call: Call) -> None:
        if call.target in IGNORED:
            return
        self._emit.at(call.name, call.stack, call.scope)
        if call.target in INLINED:
            self._inline(call)
            return
        target = _target(call.target)
        meaning = MEANINGS.get(f"{target.base}.{target.overload}") or MEANINGS.get(target.base)
        wires = self._meant(call, target, meaning) if meaning else None
        if wires is None:
            self._opaque(call)
        elif target.in_place:
            self._write(call, wires)
        else:
            self._bind(call, target, wires)

    def _meant(self, call: Call, target: _Target, meaning: Meaning) -> Sequence[Wire | None] | None:
        """What the table says, or None where it has no meaning for this use."""
        operation = Operation(
            call=call,
            overload=target.overload,
            emit=self._emit,
            program=self._program,
            read=lambda ref: self._memory.read(ref.name),
        )
        try:
            outcome: Outcome = meaning(operation)
        except Unmodelled:
            return None
        except InvalidGraph as error:
            raise InvalidGraph(f"{call.name} ({call.target}): {error}", hint=error.hint) from error
        return (outcome,) if isinstance(outcome, Wire) else outcome

    def _bind(self, call: Call, target: _Target, wires: Sequence[Wire | None]) -> None:
        """Results get their names; those that share memory with an argument are views of it."""
        if len(wires) < len(call.results):
            raise damaged(f"{call.name} has {len(call.results)} results, its operator {len(wires)}")
        sources = given(call)
        for number, (value, wire) in enumerate(zip(call.results, wires, strict=False)):
            if value is None:
                continue
            made = wire or self._unknown(call, value.type, number)
            checked(call, made, value.type)
            source = sources[number if target.base in PIECEWISE else 0] if sources else None
            sharing = source and shares(call, target.base, self._memory.described(source.name))
            if source is None or sharing is None:
                self._memory.new(value, made)
            else:
                self._memory.view(value, source.name, made, sharing is Sharing.SURE)

    def _write(self, call: Call, wires: Sequence[Wire | None]) -> None:
        """An in-place operator: its first argument gets the result, and so does the result's name."""
        if not given(call) or wires[0] is None:
            raise damaged(f"{call.name} ({call.target}) writes to nothing")
        into = given(call)[0]
        old = self._memory.read(into.name)
        new = self._emit.broadcast(self._emit.cast(wires[0], old.dtype), old.shape)
        self._memory.write(into.name, new, self._hidden(call))
        for value in call.results:
            if value is not None:
                self._memory.view(value, into.name, self._memory.read(into.name), certain=True)

    def _opaque(self, call: Call) -> None:
        """One node per result; what it may have written to is not known any more."""
        sources = given(call)
        made = [value and self._unknown(call, value.type, place) for place, value in enumerate(call.results)]
        hidden = self._hidden(call)
        for source in self._written(call):
            self._memory.spoil(source.name, hidden)
        for value, wire in zip(call.results, made, strict=True):
            if value is None or wire is None:
                continue
            if sources:
                self._memory.view(value, sources[0].name, wire, certain=False)
            else:
                self._memory.new(value, wire)

    def _written(self, call: Call) -> tuple[Ref, ...]:
        """What a call without a meaning may have written to."""
        return statistics(call) if self._is_pure(call) else given(call)

    def _is_pure(self, call: Call) -> bool:
        return is_pure(call.target) or call.target in self._program.pure

    def _only_reads(self, call: Call) -> bool:
        """Whether a call surely writes to no memory that it is given."""
        inner = [value for value in call.arguments.values() if isinstance(value, Body)]
        if call.target in INLINED or inner:
            return call.target in INLINED and all(
                self._only_reads(step) for body in inner for step in body.calls
            )
        target = _target(call.target)
        return (
            not target.in_place
            and not statistics(call)
            and (call.target in IGNORED or self._is_pure(call) or target.base in MEANINGS)
        )

    def _unknown(self, call: Call, type_: TensorType, number: int) -> Wire:
        """One result of a call without a meaning."""
        target = call.target if number == 0 else f"{call.target}#{number}"
        attrs: dict[str, Attr] = {"target": target, "config": text_of(call.arguments)}
        return self._emit.emit("opaque", *self._operands(call), declared=type_, attrs=attrs)

    def _operands(self, call: Call) -> tuple[Wire, ...]:
        """What an opaque node depends on: its tensors and, where it draws numbers, a draw of its own."""
        tensors = tuple(self._memory.read(ref.name) for ref in given(call))
        if not draws(call.target):
            return tensors
        attrs: dict[str, Attr] = {"key": f"{self._program.origin}:{call.name}", "kind": "draw"}
        return *tensors, self._emit.emit("random", declared=TensorType("f32", ()), attrs=attrs)

    def _hidden(self, call: Call) -> Callable[[Wire], Wire]:
        """Makes what is read of memory after a write that could not be followed."""
        operands = self._operands(call)
        attrs: dict[str, Attr] = {"target": f"{call.target} (written)", "config": text_of(call.arguments)}

        def hidden(before: Wire) -> Wire:
            return self._emit.emit("opaque", before, *operands, declared=before.type, attrs=attrs)

        return hidden

    def _inline(self, call: Call) -> None:
        """The inside of a ``no_grad`` or ``autocast`` block, as if it stood here."""
        body = next((value for value in call.arguments.values() if isinstance(value, Body)), None)
        if body is None:
            raise damaged(f"{call.name} has no graph inside")
        sources = given(call)
        if len(sources) != len(body.inputs) or len(call.results) > len(body.outputs):
            raise damaged(
                f"{call.name} passes {len(sources)} values to a graph that takes {len(body.inputs)}"
            )
        inner = prefixed(body, f"{call.name}/")
        for name, ref in zip(inner.inputs, sources, strict=True):
            described = replace(self._memory.described(ref.name), name=name)
            self._memory.view(described, ref.name, self._memory.read(ref.name), certain=True)
        for step in inner.calls:
            self._call(step)
        for value, ref in zip(call.results, inner.outputs, strict=False):
            if value is not None and ref is not None:
                self._memory.view(value, ref.name, self._memory.read(ref.name), certain=True)


def given(call: Call) -> tuple[Ref, ...]:
    """The tensors that a call is given, in order."""
    return tuple(ref for argument in call.arguments.values() for ref in refs(argument))


def statistics(call: Call) -> tuple[Ref, ...]:
    """Running statistics that a normalisation writes to while training, though its schema does not say so."""
    if call.target not in UPDATES_STATISTICS or not call.arguments.get(UPDATES_STATISTICS[call.target]):
        return ()
    named = (call.arguments.get(name) for name in ("running_mean", "running_var"))
    return tuple(ref for ref in named if isinstance(ref, Ref))


def refs(argument: Argument) -> tuple[Ref, ...]:
    """The values that an argument names."""
    if isinstance(argument, Ref):
        return (argument,)
    if isinstance(argument, tuple):
        return tuple(ref for entry in argument for ref in refs(entry))
    return ()


def checked(call: Call, wire: Wire, stated: TensorType) -> None:
    """The recorded shape and the one that follows from the operands must agree."""
    if wire.type.shape != stated.shape:
        raise damaged(
            f"{call.name} ({call.target}) is said to have shape {list(stated.shape)}, "
            f"but its operands give {list(wire.type.shape)}"
        )


def _unused_collectives(nodes: tuple[Node, ...], roots: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """Other ranks may use what this one does not, and meet it in the same order."""
    used = {node.id for node in live(nodes, roots)}
    meeting = (node for node in nodes if OPS[node.op].across or is_message(node))
    return tuple(node.id for node in meeting if node.id not in used)


def live(nodes: tuple[Node, ...], roots: tuple[NodeId, ...]) -> tuple[Node, ...]:
    """Inputs, and what the roots depend on, in order."""
    wanted = set(roots)
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.id in wanted or node.op == "input":
            kept.append(node)
            wanted.update(node.operands)
    return tuple(reversed(kept))
