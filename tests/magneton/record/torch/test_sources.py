"""Parameters, buffers and inputs by their names."""

import torch
from torch import nn

from magneton.record.torch.sources import Sources


def test_names_and_roles():
    model = nn.BatchNorm1d(4)
    ids, pair = torch.tensor([1]), [torch.ones(2), torch.ones(3)]
    sources = Sources({"": model, "input": {"ids": ids, "pair": pair, "flag": True}})
    assert sources.describe(model.weight) == ("parameter", "weight")
    assert model.running_mean is not None
    assert sources.describe(model.running_mean) == ("buffer", "running_mean")
    assert sources.describe(ids) == ("input", "ids")
    assert sources.describe(pair[1]) == ("input", "pair.1")
    assert sources.describe(torch.ones(4)) == ("constant", "")


def test_an_alias_of_the_same_shape_is_the_parameter_itself():
    model = nn.Linear(3, 2)
    sources = Sources({"head": model})
    assert sources.describe(model.weight.detach()) == ("parameter", "head.weight")
    assert sources.describe(model.weight.detach().t()) == ("constant", "head.weight")
    assert sources.describe(model.weight.detach()[0]) == ("constant", "head.weight")


def test_parameters_in_one_flat_storage_keep_their_own_names():
    flat = torch.zeros(10)
    model = nn.Module()
    model.first, model.second = nn.Parameter(flat[:4]), nn.Parameter(flat[4:])
    sources = Sources({"": model})
    assert sources.describe(model.first) == ("parameter", "first")
    assert sources.describe(model.second) == ("parameter", "second")
    assert sources.describe(flat[6:]) == ("constant", "second")
    assert [tuple(tensor.shape) for tensor in sources.lasting()] == [(4,), (6,)]


def test_sparse_tensors_have_no_window_to_name():
    sparse = torch.eye(3).to_sparse()
    assert Sources({"input": {"x": sparse}}).describe(sparse) == ("constant", "")
