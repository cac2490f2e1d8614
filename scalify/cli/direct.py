"""Options read without the validation library that typer imports for them.

That import takes as much processor time as proving a layer of a model, for a handful of strings.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand


class ReadsDirectly(TyperCommand):
    """Reads the values of its parameters itself where all is in order.

    ``readers`` says how, by parameter; one without is taken as it comes. Whatever else there is (help, a
    wrong value, a missing one) is left to typer, which answers it as ever.
    """

    readers: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        known = {str(param.name) for param in self._own()}
        values = None if rest or not given.keys() <= known else self._read(given)
        if values is None:
            return super().parse_args(ctx, args)
        ctx.params.update(values)
        return []

    def _read(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Every parameter's value, unless one is missing or not what its reader takes."""
        values: dict[str, Any] = {}
        for param in self._own():
            name = str(param.name)
            value = given.get(name, param.default)
            if value is None or value == ():
                if param.required:
                    return None
                value = () if param.multiple else value
            else:
                try:
                    value = self.readers.get(name, _as_it_comes)(value)
                except (ValueError, typer.BadParameter):
                    return None
            values[name] = value
        return values

    def _own(self) -> list[Any]:
        """Those that the command's function takes."""
        return [param for param in self.params if param.expose_value]


def _as_it_comes(value: Any) -> Any:
    return value
