"""Which module is running? Known from hooks on every module's call, set up for one pass only.

In: the named roots of a system. Out: the path of the innermost module that has a name.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


def joined(root: str, name: str) -> str:
    """The name of a thing inside a root; the root "" adds nothing."""
    return f"{root}.{name}" if root and name else root or name


class ModulePath:
    """The stack of modules whose forward is running; modules without a name count to the one around them."""

    def __init__(self, roots: Mapping[str, object]) -> None:
        self._names: dict[int, str] = {}
        for root, thing in roots.items():
            if isinstance(thing, nn.Module):
                for name, module in thing.named_modules():
                    self._names.setdefault(id(module), joined(root, name))
        self._running: list[str] = [""]

    def current(self) -> str:
        return self._running[-1]

    @contextmanager
    def followed(self) -> Generator[None]:
        def enter(module: nn.Module, _arguments: object) -> None:
            self._running.append(self._names.get(id(module), self._running[-1]))

        def leave(_module: nn.Module, _arguments: object, _result: object) -> None:
            if len(self._running) > 1:
                self._running.pop()

        handles = (
            register_module_forward_pre_hook(enter),
            register_module_forward_hook(leave, always_call=True),
        )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
