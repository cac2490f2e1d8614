"""Instructions without a meaning here: kept whole, with all that tells one from another.

Two opaque nodes are the same operation only if target and config agree, so the config names every attribute
that the reader knows and the content of every called computation (by digest, names left out). A config that
begins with ``rank-dependent`` belongs to an instruction whose result may differ from rank to rank even where
its operands do not.
"""

import hashlib
from dataclasses import MISSING, fields

from scalify.ir.graph import NodeId
from scalify.load.hlo.emit import Emission, Step, Value, leaves, structured
from scalify.load.hlo.program import Instruction
from scalify.load.hlo.ranks import COLLECTIVES
from scalify.load.hlo.shapes import tensor_type

_NOT_CONFIG = frozenset(
    {"name", "opcode", "id", "shape", "operands", "called", "metadata", "literal", "channel"}
)
_DEFAULTS = {
    field.name: field.default
    for field in fields(Instruction)
    if field.name not in _NOT_CONFIG and field.default is not MISSING
}
_OF_RANK = COLLECTIVES | {"partition-id", "replica-id", "send", "recv", "infeed"}


def opaque(step: Step, *, effect: bool = False) -> Value:
    """The instruction as opaque nodes, one for every array of its result.

    One with an ``effect`` is numbered in the order of the program, so that no two of them are the same.
    """
    instruction, emission = step.instruction, step.emission
    config = config_of(instruction, emission)
    if effect:
        config = f"effect {len(emission.effects)}; {config}"
    target = f"hlo.{instruction.opcode}"
    if instruction.target:
        target = f"{target}.{instruction.target}"
    operands = tuple(node for value in step.operands for node in _flat(value))
    values: dict[tuple[int, ...], NodeId] = {}
    for path, leaf in leaves(instruction.shape):
        place = ".".join(map(str, path))
        values[path] = step.emit(
            "opaque",
            operands,
            tensor_type(leaf, instruction.name),
            place,
            target=target,
            config=f"{config}; result {place}" if place else config,
        )
    return structured(instruction.shape, values)


def _flat(value: Value) -> tuple[NodeId, ...]:
    if isinstance(value, tuple):
        return tuple(node for part in value for node in _flat(part))
    return () if value is None else (value,)


def config_of(instruction: Instruction, emission: Emission) -> str:
    """The attributes that an instruction sets, in a fixed order, and its computations' digests."""
    parts = [
        f"{name}={value!r}"
        for name, default in _DEFAULTS.items()
        if (value := getattr(instruction, name)) != default
    ]
    called = [digest_of(computation, emission) for computation in instruction.called]
    parts += [f"calls {digest}" for digest, _ in called]
    if instruction.opcode in _OF_RANK or any(rank_dependent for _, rank_dependent in called):
        ranks = emission.ranks
        parts.insert(0, f"rank-dependent of {ranks.replicas}x{ranks.partitions}")
    return "; ".join(parts)


def digest_of(computation_id: int, emission: Emission) -> tuple[str, bool]:
    """The digest of a computation by content (opcodes, shapes, attributes, wiring; no names).

    With it, whether an instruction in it depends on the rank. Translation has made sure that calls end.
    """
    known = emission.digests.get(computation_id)
    if known is None:
        known = emission.digests[computation_id] = _digest(computation_id, emission)
    return known


def _digest(computation_id: int, emission: Emission) -> tuple[str, bool]:
    computation = emission.module.computations[computation_id]
    number = {instruction.id: index for index, instruction in enumerate(computation.instructions)}
    digest, rank_dependent = hashlib.sha256(), False
    for instruction in computation.instructions:
        called = [digest_of(inner, emission) for inner in instruction.called]
        rank_dependent |= instruction.opcode in _OF_RANK or any(dependent for _, dependent in called)
        line = (
            instruction.opcode,
            instruction.shape,
            [number.get(operand) for operand in instruction.operands],
            [getattr(instruction, name) for name in _DEFAULTS],
            instruction.literal.data if instruction.literal else b"",
            [inner for inner, _ in called],
        )
        digest.update(repr(line).encode())
    digest.update(repr(number.get(computation.root)).encode())
    return digest.hexdigest(), rank_dependent
