"""What the text of options means."""

import pytest
import typer

from scalify.cli.options import definition, memory_size, mesh_axes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4GB", 4 * 10**9), ("4 gb", 4 * 10**9), ("1.5GiB", 3 * 2**29), ("300MB", 300 * 10**6)],
)
def test_sizes(text: str, size_bytes: int):
    assert memory_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("hlo.custom-call.Gelu=gelu.pt", ("hlo.custom-call.Gelu", "gelu.pt")),
        ("norm[eps=1e-05,dim=4]=a=b.pt", ("norm[eps=1e-05,dim=4]", "a=b.pt")),
        ("norm=a[x]=b.pt", ("norm", "a[x]=b.pt")),
    ],
)
def test_a_definition_names_an_operation_or_one_with_attributes(text: str, read: tuple[str, str]):
    assert definition(text) == read


def test_the_first_axis_is_the_slowest():
    assert mesh_axes("dp=2, tp=4") == (("dp", 2), ("tp", 4))


@pytest.mark.parametrize(
    "text", ["tp", "tp=", "tp=0", "=4", "tp=4,", "tp=4,tp=2", "tp=-1", "t p=2", "tp=9999999"]
)
def test_what_is_no_mesh_is_an_error_of_use(text: str):
    with pytest.raises(typer.BadParameter):
        mesh_axes(text)
