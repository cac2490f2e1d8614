"""Names of a graph inside a call, made unlike any outside it, so that it can stand in its place."""

from dataclasses import replace
from types import MappingProxyType

from scalify.load.torch_export.program import Argument, Body, Ref, ValueName


def prefixed(body: Body, prefix: str) -> Body:
    """The same graph, every name in it with ``prefix`` before it."""

    def ours(name: ValueName) -> ValueName:
        return ValueName(prefix + name)

    def argument(value: Argument) -> Argument:
        if isinstance(value, Ref):
            return Ref(ours(value.name))
        if isinstance(value, tuple):
            return tuple(argument(entry) for entry in value)
        return value

    calls = tuple(
        replace(
            call,
            name=prefix + call.name,
            arguments=MappingProxyType({name: argument(value) for name, value in call.arguments.items()}),
            results=tuple(value and replace(value, name=ours(value.name)) for value in call.results),
        )
        for call in body.calls
    )
    return Body(
        inputs=tuple(ours(name) for name in body.inputs),
        calls=calls,
        outputs=tuple(ref and Ref(ours(ref.name)) for ref in body.outputs),
    )
