import torch

from magneton.systems.snapshot import Snapshot


def test_what_was_overwritten_comes_back():
    changed, untouched = torch.ones(3), torch.ones(3)
    snapshot = Snapshot((changed, untouched, changed))
    for _ in range(3):
        changed.add_(1)
        snapshot.restore()
        assert changed.tolist() == [1, 1, 1]
    assert untouched._version == 0


def test_writes_that_nobody_counts_are_found():
    running = torch.zeros(2)
    snapshot = Snapshot((running,))
    for _ in range(2):
        running.numpy()[:] = 5  # as a kernel does that writes through a pointer
        snapshot.restore()
        assert running.tolist() == [0, 0]


def test_a_write_that_comes_late_is_found():
    tensor = torch.zeros(2)
    snapshot = Snapshot((tensor,))
    snapshot.restore()
    tensor.add_(1)
    snapshot.restore()
    assert tensor.tolist() == [0, 0]


def test_leaves_that_require_gradients_are_put_back():
    tensor = torch.ones(2, requires_grad=True)
    snapshot = Snapshot((tensor,))
    tensor.data.mul_(3)
    snapshot.restore()
    assert tensor.tolist() == [1, 1]
    assert tensor.is_leaf
