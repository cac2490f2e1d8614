"""Watches a module while PyTorch records what it does: where each operator stands, and collectives in place.

Of every recorded node it keeps the user's lines and the submodule. What a backward pass adds stands at the
operator of the forward pass whose derivative it is part of, and in the user's own backward code where there
is any. A collective that writes to its argument is recorded as one that does not, and a copy.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from scalify.capture.in_place import IN_PLACE
from scalify.ir.graph import Site
from scalify.load.torch_export.sites import is_users

Stack = tuple[Site, ...]

_OURS = str(Path(__file__).parent)
# Of PyTorch's own: the frame from which the backward pass is run.
_ENGINE = str(Path("torch", "autograd", "graph.py"))


class Watch(TorchDispatchMode):
    """Open while a module is recorded. ``stacks`` and ``scopes`` are by the node's name."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.stacks: dict[str, Stack] = {}
        self.scopes: dict[str, str] = {}
        self._module = module
        self._paths: list[str] = []
        self._hooks: list[RemovableHandle] = []
        # By the number that autograd gives the operator in the forward pass.
        self._forward: dict[int, tuple[Stack, str]] = {}

    def __enter__(self) -> "Watch":
        for path, inner in self._module.named_modules():
            self._hooks.append(inner.register_forward_pre_hook(self._entered(path), prepend=True))
            self._hooks.append(inner.register_forward_hook(self._left, always_call=True))
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        for hook in self._hooks:
            hook.remove()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        before = _last(graph) if (graph := _graph()) is not None else None
        meaning = IN_PLACE.get(str(func))
        answer = func(*args, **(kwargs or {})) if meaning is None else meaning(*args, **(kwargs or {}))
        if graph is not None:
            self._settle(graph, before)
        return answer

    def _entered(self, path: str) -> Callable[..., None]:
        return lambda *_: self._paths.append(path)

    def _left(self, *_: object) -> None:
        self._paths.pop()

    def _settle(self, graph: Graph, before: Node | None) -> None:
        """All nodes since ``before`` stand here."""
        node = _last(graph)
        if node is before:
            return
        stack, scope = self._here()
        while node is not None and node is not before and node.op != "root":
            self.stacks.setdefault(node.name, stack or self._of_operands(node))
            self.scopes.setdefault(node.name, scope)
            node = node.prev

    def _here(self) -> tuple[Stack, str]:
        # PyTorch has no public way to these three.
        function: Any = torch._C._current_autograd_node()  # pyright: ignore[reportPrivateUsage]
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if function is None:
            here = _stack(_frames(frame)), self._paths[-1] if self._paths else ""
        else:
            forward, scope = self._forward.get(function._sequence_nr(), ((), ""))
            here = (*forward, *_stack(_frames(frame, _ENGINE))), scope
        # The operator that is being run was counted already.
        number = torch.autograd._get_sequence_nr() - 1  # pyright: ignore[reportPrivateUsage]
        self._forward.setdefault(number, here)
        return here

    def _of_operands(self, node: Node) -> Stack:
        """Where what it is computed from was made: a sum of gradients belongs to no operator."""
        found = (self.stacks.get(operand.name, ()) for operand in node.all_input_nodes)
        return next((stack for stack in found if stack), ())


def _graph() -> Graph | None:
    mode = get_proxy_mode()
    return mode.tracer.graph if mode is not None else None


def _last(graph: Graph) -> Node | None:
    return next(iter(reversed(graph.nodes)), None)


def _frames(frame: FrameType | None, until: str = "") -> Iterator[FrameType]:
    """From the innermost, up to where we called the module, or PyTorch's file ``until`` called it."""
    seen = False
    while frame is not None:
        file = frame.f_code.co_filename
        if until and file.endswith(until):
            return
        ours = file.startswith(_OURS)
        if ours and seen:
            return
        seen = seen or not ours
        if not ours:
            yield frame
        frame = frame.f_back


def _stack(frames: Iterator[FrameType]) -> Stack:
    """The user's frames, outermost first."""
    found = [
        Site(file=frame.f_code.co_filename, line=frame.f_lineno, function=frame.f_code.co_name)
        for frame in frames
        if is_users(frame.f_code.co_filename)
    ]
    return tuple(reversed(found))
