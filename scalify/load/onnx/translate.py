"""A ``Model`` as a graph: every node looked up in the table of meanings, in order.

In: a Model. Out: a Graph that computes what it does. Operators that the model defines itself are written
out. A node without a meaning is one ``opaque`` node per result, whose type the file must state. Nodes that
no output depends on are left out; inputs stay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.graph import Attr, Graph, Output, TensorType
from scalify.load.onnx.canonical import text_of
from scalify.load.onnx.folding import Folding
from scalify.load.onnx.meaning import MEANINGS
from scalify.load.onnx.model import Array, Function, Model, OnnxNode, Parameter, Value, damaged
from scalify.load.onnx.operation import MOST_OUTPUTS, Operation, Unmodelled
from scalify.load.onnx.sites import scope_of, stack_of
from scalify.load.onnx.weights import Weights
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.translate import live

OLDEST, NEWEST = 13, 26
DEEPEST = 50
MOST_INLINED = 500_000
_DRAWS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_INFER = "run onnx.shape_inference.infer_shapes on the model and save it again"

Names = dict[str, Wire | None]


def translate(model: Model, weights: Mapping[str, Array] = MappingProxyType({})) -> Graph:
    """The graph of a model. ``weights`` are values by names, for weights that have lost their names."""
    version = model.opsets.get("", NEWEST)
    if not OLDEST <= version <= NEWEST:
        raise UnsupportedFormat(
            f"the model is of opset {version}; {OLDEST} to {NEWEST} are read",
            hint=f"export it with opset_version={max(OLDEST, 18)}",
        )
    return _Translation(model, weights).graph()


class _Translation:
    def __init__(self, model: Model, weights: Mapping[str, Array]) -> None:
        self._model = model
        self._emit = Folding()
        self._weights = Weights(model, self._emit, weights)
        self._notes: dict[str, None] = {}
        self._inlined = 0

    def graph(self) -> Graph:
        names: Names = {}
        for position, (name, type_) in enumerate(self._model.inputs):
            self._emit.at(name)
            attrs: dict[str, Attr] = {"name": name, "role": "input", "position": position}
            _bind(names, name, self._emit.emit("input", declared=type_, attrs=attrs))
        for name, wire in self._weights.take(len(self._model.inputs)):
            _bind(names, name, wire)
        self._run(self._model.nodes, names, self._model.opsets, {}, (), "")
        outputs = tuple(self._output(name, names) for name in self._model.outputs)
        if not outputs:
            raise InvalidGraph("the model has no output", hint="export it again")
        nodes = tuple(self._emit.nodes.values())
        return Graph(
            name=self._model.name or "onnx",
            nodes=live(nodes, tuple(output.value for output in outputs)),
            outputs=outputs,
            notes=(*self._weights.notes, *self._notes),
        )

    def _output(self, name: str, names: Names) -> Output:
        wire = names.get(name)
        if wire is None:
            raise damaged(f"output {name!r} is computed by no node")
        return Output(name=name, value=wire.id)

    def _run(
        self,
        nodes: Sequence[OnnxNode],
        names: Names,
        opsets: Mapping[str, int],
        parameters: Mapping[str, Value],
        calls: tuple[tuple[str, str, str], ...],
        prefix: str,
    ) -> None:
        """Translate nodes in order. ``calls`` are the functions around them."""
        for node in nodes:
            inputs = tuple(_look_up(names, name, node) for name in node.inputs)
            attributes = _resolved(node, parameters)
            function = self._model.functions.get((node.domain, node.op, node.overload))
            if function is not None:
                results = self._inline(node, function, inputs, attributes, calls, prefix)
            else:
                results = self._node(node, opsets, inputs, attributes, prefix)
            for name, wire in zip(node.outputs, results, strict=False):
                _bind(names, name, wire)

    def _node(
        self,
        node: OnnxNode,
        opsets: Mapping[str, int],
        inputs: tuple[Wire | None, ...],
        attributes: Mapping[str, Value],
        prefix: str,
    ) -> Sequence[Wire | None]:
        if not node.outputs or len(node.outputs) > MOST_OUTPUTS:
            raise damaged(f"{node.op} {node.name} has {len(node.outputs)} results")
        first = next((name for name in node.outputs if name), node.name)
        self._emit.at(f"{prefix}{first}", stack_of(node), scope_of(node))
        operation = Operation(
            node=node,
            opset=opsets.get(node.domain, 1),
            inputs=inputs,
            attributes=attributes,
            emit=self._emit,
            notes=self._notes,
            types=tuple(None if prefix else self._model.types.get(name) for name in node.outputs),
        )
        wires = self._meant(operation)
        if wires is None:
            return self._opaque(operation, prefix)
        if len(wires) < len(node.outputs):
            rest = any(node.outputs[len(wires) :])
            wires = (*wires, *(self._opaque(operation, prefix)[len(wires) :] if rest else ()))
        return [_checked(operation, place, wire) for place, wire in enumerate(wires)]

    def _meant(self, operation: Operation) -> Sequence[Wire | None] | None:
        node = operation.node
        meaning = None if node.domain or node.overload else MEANINGS.get(node.op)
        if meaning is None:
            return None
        try:
            outcome = meaning(operation)
        except Unmodelled:
            return None
        except InvalidGraph as error:
            raise InvalidGraph(f"{operation.what}: {error}", hint=error.hint) from error
        if operation.unread():
            return None  # a newer release's, it may be, which changes what the node computes
        return (outcome,) if isinstance(outcome, Wire) else outcome

    def _opaque(self, operation: Operation, prefix: str) -> list[Wire | None]:
        """One node per result."""
        node = operation.node
        operands = tuple(wire for wire in operation.inputs if wire is not None)
        if node.op in _DRAWS or node.op == "Dropout":
            attrs: dict[str, Attr] = {"key": f"{self._model.origin}:{prefix}{node.outputs}", "kind": node.op}
            operands += (self._emit.emit("random", declared=TensorType("f32", ()), attrs=attrs),)
        config = text_of(operation)
        results: list[Wire | None] = []
        for number, name in enumerate(node.outputs):
            type_ = operation.types[number]
            if not name:
                results.append(None)
                continue
            if type_ is None:
                raise UnsupportedFormat(
                    f"{operation.what} has no meaning here, and the file does not state the type of {name!r}",
                    hint=_INFER,
                )
            target = node.target if number == 0 else f"{node.target}#{number}"
            results.append(
                self._emit.emit(
                    "opaque", *operands, declared=type_, attrs={"target": target, "config": config}
                )
            )
        return results

    def _inline(
        self,
        node: OnnxNode,
        function: Function,
        inputs: tuple[Wire | None, ...],
        attributes: Mapping[str, Value],
        calls: tuple[tuple[str, str, str], ...],
        prefix: str,
    ) -> Sequence[Wire | None]:
        """The function's nodes in the place of the node that calls it."""
        key = (node.domain, node.op, node.overload)
        self._inlined += len(function.nodes) + 1
        if key in calls or len(calls) >= DEEPEST or self._inlined > MOST_INLINED:
            raise InvalidGraph(
                f"function {node.op} calls itself, or the model unfolds beyond measure",
                hint="export the model without functions",
            )
        if len(inputs) > len(function.inputs) or len(node.outputs) > len(function.outputs):
            raise damaged(f"{node.op} {node.name} does not fit the function of this name")
        given = (*inputs, *(None for _ in function.inputs[len(inputs) :]))
        names: Names = dict(zip(function.inputs, given, strict=True))
        known = {**function.defaults, **{n: v for n, v in attributes.items() if n in function.attributes}}
        inner = f"{prefix}{node.name or node.outputs[0]}/" if len(prefix) < 200 else f"call {self._inlined}/"
        places = (
            replace(step, metadata=node.metadata) if not step.metadata else step for step in function.nodes
        )
        self._run(tuple(places), names, function.opsets, known, (*calls, key), inner)
        missing = [name for name in function.outputs if name not in names]
        if missing:
            raise damaged(f"function {node.op} does not compute {missing[0]!r}")
        return [names[name] for name in function.outputs]


def _bind(names: Names, name: str, wire: Wire | None) -> None:
    if not name:
        return
    if name in names:
        raise damaged(f"two values are called {name!r}")
    names[name] = wire


def _look_up(names: Names, name: str, node: OnnxNode) -> Wire | None:
    if not name:
        return None
    if name not in names:
        raise damaged(f"{node.op} {node.name} reads {name!r}, which no node before it computes")
    return names[name]


def _resolved(node: OnnxNode, parameters: Mapping[str, Value]) -> Mapping[str, Value]:
    """Attributes with those of the function around put in; one that is left out there is left out here."""
    resolved: dict[str, Value] = {}
    for name, value in node.attributes.items():
        if not isinstance(value, Parameter):
            resolved[name] = value
        elif value.name in parameters:
            resolved[name] = parameters[value.name]
    return MappingProxyType(resolved)


def _checked(operation: Operation, place: int, wire: Wire | None) -> Wire | None:
    """A stated shape and the one that follows from the operands must agree."""
    stated = operation.types[place] if place < len(operation.types) else None
    if wire is not None and stated is not None and wire.type != stated:
        raise damaged(
            f"{operation.what} is said to give {stated.dtype}{list(stated.shape)}, "
            f"but its operands give {wire.dtype}{list(wire.shape)}"
        )
    return wire
