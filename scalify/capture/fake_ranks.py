"""Being one rank of a mesh, alone: PyTorch's fake process group, whose collectives do nothing.

Within ``as_rank`` the process believes that it is that rank. It gets one process group per mesh axis, and
what is made of them (or of a ``DeviceMesh``) is known by the ranks it joins.
"""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from scalify.errors import CaptureFailed
from scalify.ir.mesh import Groups, Mesh, groups_along


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The rank that this process plays, and its groups by mesh axis."""

    mesh: Mesh
    rank: int
    groups: Mapping[str, ProcessGroup]

    def partitions(self) -> dict[str, Groups]:
        """For each process group there is by now, how groups like it cut up the mesh."""
        whole = _partitions(self.mesh)
        found: dict[str, Groups] = {}
        # Only this table knows of the groups that the user's own code made.
        named = dist.distributed_c10d._world.pg_names  # pyright: ignore[reportPrivateUsage]
        for group, name in named.items():
            ranks = tuple(sorted(dist.get_process_group_ranks(group)))
            if ranks in whole:
                found[name] = whole[ranks]
        return found


def _partitions(mesh: Mesh) -> dict[tuple[int, ...], Groups]:
    """Every way in which groups along some axes cut up the mesh, by the members of each group."""
    found: dict[tuple[int, ...], Groups] = {}
    names = [name for name, _ in mesh.axes]
    for count in range(len(names) + 1):
        for chosen in combinations(names, count):
            partition = groups_along(mesh, chosen)
            for group in partition:
                found.setdefault(group, partition)
    return found


def _serve_meta() -> None:
    """Batches of messages ask for the backend of their device: that of tensors without values, too."""
    # Only this table knows of all groups, and only here can a backend be named.
    for group in dist.distributed_c10d._world.pg_names:  # pyright: ignore[reportPrivateUsage]
        backend = group._get_backend(torch.device("cpu"))  # pyright: ignore[reportPrivateUsage]
        group._register_backend(  # pyright: ignore[reportPrivateUsage]
            torch.device("meta"), ProcessGroup.BackendType.CUSTOM, backend
        )


@contextmanager
def as_rank(mesh: Mesh, rank: int) -> Generator[Membership]:
    """Play one rank."""
    if dist.is_initialized():
        raise CaptureFailed(
            "this process is part of a real process group already", hint="capture in a process of its own"
        )
    hook = sys.excepthook  # Starting a process group puts the rank before every line of every traceback.
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=mesh.size)
    try:
        sizes = tuple(size for _, size in mesh.axes)
        names = tuple(name for name, _ in mesh.axes)
        devices = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        _serve_meta()
        yield Membership(mesh=mesh, rank=rank, groups={name: devices.get_group(name) for name in names})
    finally:
        dist.destroy_process_group()
        sys.excepthook = hook
