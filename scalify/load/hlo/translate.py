"""From a ``Module`` to a graph: calls and fusions inlined, identities gone, tuples taken apart.

Every instruction of the entry computation becomes nodes, in order and whether used or not. An opcode without
a translation becomes ``opaque``. What the file says is checked on the way (operands come before their users,
calls end, parameters are numbered without gaps); types are checked by ``scalify.ir.check`` afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from scalify.errors import InvalidGraph
from scalify.ir.graph import Graph, NodeId, Output
from scalify.load.hlo import calls, collectives, contraction, elementwise, indexing, movement, reduction
from scalify.load.hlo.emit import Emission, Step, Value, leaves, paths, structured
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import (
    MAX_INSTRUCTIONS,
    Computation,
    Instruction,
    Metadata,
    Module,
    Shape,
)
from scalify.load.hlo.ranks import ranks_of
from scalify.load.hlo.shapes import is_array, tensor_type
from scalify.load.hlo.sites import Place, Sites

MAX_CALL_DEPTH = 100
MAX_PREFIX = 200
_DAMAGED = "the file is damaged or was edited; write it again"

_HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {
        **elementwise.HANDLERS,
        **movement.HANDLERS,
        **contraction.HANDLERS,
        **reduction.HANDLERS,
        **indexing.HANDLERS,
        **collectives.HANDLERS,
        **calls.HANDLERS,
    }
)
_INLINED = frozenset({"call", "fusion", "async-start"})
_PASSED_ON = frozenset({"async-update", "async-done"})

# What is more than opaque.
OPCODES = (*_HANDLERS, *_INLINED, *_PASSED_ON)


class Places(Protocol):
    """Finds the line to show of an instruction, and the whole chain."""

    def of(self, metadata: Metadata | None) -> Place:
        """(None, ()) where the file says nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the opcodes of a module mean, and how its lines are found."""

    handlers: Mapping[str, Callable[[Step], Value]]
    sites: Callable[[Module], Places]


HLO = Dialect(_HANDLERS, Sites)


def translate(module: Module, *, dialect: Dialect = HLO) -> Graph:
    """The graph of the module's entry computation."""
    entry = module.computations.get(module.entry)
    if entry is None:
        raise InvalidGraph(f"the module has no entry computation {module.entry}", hint=_DAMAGED)
    _check_calls(module)
    ranks = ranks_of(module)
    translation = _Translation(module, Emission(module, ranks), dialect)
    result = translation.run(entry, translation.inputs(entry), None)
    return Graph(
        name=module.name,
        nodes=tuple(translation.emission.nodes.values()),
        outputs=translation.outputs(result),
        mesh=ranks.mesh(),
    )


def _check_calls(module: Module) -> None:
    """Called computations exist, and calls end before they are too deep to follow or too many to inline."""
    depths: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for start in module.computations:
        pending, open_calls = [start], set[int]()
        while pending:
            current = pending[-1]
            inner = _callees(module, current) if current not in depths else frozenset[int]()
            waiting = [computation for computation in inner if computation not in depths]
            if any(computation in open_calls for computation in (*waiting, *inner & {current})):
                raise InvalidGraph(f"{module.computations[current].name} calls itself", hint=_DAMAGED)
            if waiting:
                open_calls.add(current)
                pending.extend(waiting)
                continue
            pending.pop()
            if current not in depths:
                depths[current] = 1 + max((depths[computation] for computation in inner), default=0)
                sizes[current] = _inlined_size(module.computations[current], sizes)
    _check_bounds(max(depths.values()), sizes[module.entry])


def _inlined_size(computation: Computation, sizes: Mapping[int, int]) -> int:
    return len(computation.instructions) + sum(
        sizes[called]
        for instruction in computation.instructions
        if instruction.opcode in _INLINED
        for called in instruction.called
    )


def _check_bounds(depth: int, size: int) -> None:
    if depth > MAX_CALL_DEPTH:
        raise InvalidGraph(f"calls are nested {depth} deep", hint=f"up to {MAX_CALL_DEPTH} are followed")
    if size > MAX_INSTRUCTIONS:
        raise InvalidGraph(
            f"the module has {size} instructions once its calls are inlined",
            hint="verify a part of the model, or fewer layers",
        )


def _callees(module: Module, computation_id: int) -> frozenset[int]:
    called = frozenset(
        called
        for instruction in module.computations[computation_id].instructions
        for called in instruction.called
    )
    absent = [computation for computation in called if computation not in module.computations]
    if absent:
        raise InvalidGraph(f"the module has no computation {absent[0]} to call", hint=_DAMAGED)
    return called


class _Translation:
    def __init__(self, module: Module, emission: Emission, dialect: Dialect) -> None:
        self.module = module
        self.emission = emission
        self._handlers = dialect.handlers
        self._sites = dialect.sites(module)
        self._calls = 0
        self._parameters: dict[int, dict[tuple[int, ...], str]] = {}

    def inputs(self, entry: Computation) -> tuple[Value, ...]:
        """Input nodes for the entry's parameters, a tuple's one by one; positions count arrays."""
        values: list[Value] = []
        names: set[str] = set()
        position = 0
        for number, parameter in enumerate(_parameters_in_order(entry)):
            nodes: dict[tuple[int, ...], NodeId] = {}
            for path, leaf in leaves(parameter.shape):
                name = ".".join((parameter.name, *map(str, path)))
                name = f"{name}#{position}" if name in names else name
                names.add(name)
                nodes[path] = self._input(parameter, name, position, leaf)
                self._parameters.setdefault(number, {})[path] = name
                position += 1
            values.append(structured(parameter.shape, nodes))
        return tuple(values)

    def _input(self, parameter: Instruction, name: str, position: int, shape: Shape) -> NodeId:
        step = self._step(parameter, (), (), name)
        type = tensor_type(shape, parameter.name)
        return step.emit("input", (), type, name=name, role="input", position=position)

    def run(self, computation: Computation, arguments: tuple[Value, ...], caller: Step | None) -> Value:
        """Translate a computation's instructions with its parameters bound; the root's value."""
        prefix = self._prefix(caller) if caller else ""
        values: dict[int, Value] = {}
        shapes: dict[int, Shape] = {}
        for instruction in computation.instructions:
            if instruction.id in values:
                raise InvalidGraph(f"two instructions of {computation.name} have one id", hint=_DAMAGED)
            absent = [operand for operand in instruction.operands if operand not in values]
            if absent:
                raise InvalidGraph(
                    f"{instruction.opcode} {instruction.name} uses instruction {absent[0]}, "
                    "which does not come before it (a cycle, or no such instruction)",
                    hint=_DAMAGED,
                )
            operands = tuple(values[operand] for operand in instruction.operands)
            operand_shapes = tuple(shapes[operand] for operand in instruction.operands)
            shapes[instruction.id] = instruction.shape
            if instruction.opcode == "parameter":
                values[instruction.id] = _argument(instruction, arguments)
                continue
            step = self._step(instruction, operands, operand_shapes, f"{prefix}{instruction.name}")
            if caller and step.site is None:
                step.site, step.stack = caller.site, caller.stack
            values[instruction.id] = self._value(step)
        if computation.root not in values:
            raise InvalidGraph(f"computation {computation.name} has no root", hint=_DAMAGED)
        return values[computation.root]

    def _prefix(self, caller: Step) -> str:
        """What precedes the names inside a call: its own, or a number where nesting makes that long."""
        self._calls += 1
        return f"{caller.id}/" if len(caller.id) < MAX_PREFIX else f"call {self._calls}/"

    def _step(
        self,
        instruction: Instruction,
        operands: tuple[Value, ...],
        operand_shapes: tuple[Shape, ...],
        id: str,
    ) -> Step:
        site, stack = self._sites.of(instruction.metadata)
        return Step(
            emission=self.emission,
            instruction=instruction,
            operands=operands,
            operand_shapes=operand_shapes,
            id=id,
            site=site,
            stack=stack,
        )

    def _value(self, step: Step) -> Value:
        instruction = step.instruction
        opcode = instruction.opcode
        if opcode in _INLINED and len(instruction.called) == 1:
            called = self.module.computations[instruction.called[0]]
            return self.run(called, step.operands, step)
        if opcode in _PASSED_ON and len(step.operands) == 1:
            return step.operands[0]
        handler = self._handlers.get(opcode, opaque)
        value = step.named(handler(step))
        self._check_form(step, value)
        return value

    def _check_form(self, step: Step, value: Value) -> None:
        """An array where the instruction says array, of the shape that it says."""
        shape = step.instruction.shape
        if is_array(shape) and (
            not isinstance(value, str) or self.emission.nodes[value].type.shape != shape.dims
        ):
            raise step.wrong(f"does not have the shape {list(shape.dims)} that it says")

    def outputs(self, result: Value) -> tuple[Output, ...]:
        """The root's arrays, with the inputs whose buffers they take over; then effects."""
        aliases = {alias.output: alias for alias in self.module.aliases}
        outputs: list[Output] = []
        for path, node in paths(result):
            alias = aliases.get(path)
            name = ".".join(map(str, path or (0,)))
            taken = None
            if alias is not None:
                taken = self._parameters.get(alias.parameter, {}).get(alias.parameter_path)
                if taken is None:
                    raise InvalidGraph(
                        f"output {name} takes over an input that does not exist", hint=_DAMAGED
                    )
            outputs.append(Output(name=f"output.{name}", value=node, alias=taken))
        effects = [
            Output(name=f"effect.{index}", value=node) for index, node in enumerate(self.emission.effects)
        ]
        if not outputs and not effects:
            raise InvalidGraph(
                "the module computes nothing", hint="its entry computation should have a result"
            )
        return (*outputs, *effects)


def _parameters_in_order(entry: Computation) -> tuple[Instruction, ...]:
    parameters = {
        instruction.parameter_number: instruction
        for instruction in entry.instructions
        if instruction.opcode == "parameter"
    }
    count = sum(instruction.opcode == "parameter" for instruction in entry.instructions)
    if sorted(parameters) != list(range(count)):
        raise InvalidGraph(f"the parameters of {entry.name} are not numbered 0 to {count - 1}", hint=_DAMAGED)
    return tuple(parameters[number] for number in range(count))


def _argument(parameter: Instruction, arguments: tuple[Value, ...]) -> Value:
    if not 0 <= parameter.parameter_number < len(arguments):
        raise InvalidGraph(
            f"{parameter.name} is parameter {parameter.parameter_number} of {len(arguments)}", hint=_DAMAGED
        )
    return arguments[parameter.parameter_number]
