import torch
from torch import Tensor, nn
from torch.fx.proxy import TracerBase

from scalify.capture import captured
from scalify.capture.lines import all_lines


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return self.doubled(x).sin()

    def doubled(self, x: Tensor) -> Tensor:
        return x * 2.0


def build() -> tuple[nn.Module, tuple[Tensor]]:
    return Twice(), (torch.zeros(3),)


def test_an_operator_stands_in_the_function_that_calls_it() -> None:
    nodes = {node.op: node for node in captured(build, name="twice").nodes}
    product, sine = nodes["mul"], nodes["sin"]
    assert product.site is not None and sine.site is not None
    assert (product.site.function, sine.site.function) == ("doubled", "forward")
    assert [site.function for site in product.stack] == ["forward", "doubled"]
    assert product.stack[0].line == sine.site.line


def test_pytorch_is_left_as_it_was() -> None:
    before = TracerBase._filter_traceback_frames  # pyright: ignore[reportPrivateUsage]
    with all_lines():
        assert TracerBase._filter_traceback_frames is not before  # pyright: ignore[reportPrivateUsage]
    assert TracerBase._filter_traceback_frames is before  # pyright: ignore[reportPrivateUsage]
