"""Being one rank of a mesh, alone: PyTorch's fake process group, whose collectives do nothing.

Within ``as_rank`` the process believes that it is that rank. It gets one process group per mesh axis, and
what is made of them (or of a ``DeviceMesh``) is known by the ranks it joins.
"""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from scalify.capture.partitions import Members, partitions
from scalify.errors import CaptureFailed
from scalify.ir.mesh import Groups, Mesh


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The rank that this process plays, and its groups by mesh axis."""

    mesh: Mesh
    rank: int
    groups: Mapping[str, ProcessGroup]

    def known(self) -> dict[str, Members]:
        """The members of each process group that there is by now on this rank."""
        # Only this table knows of the groups that the user's own code made.
        named = dist.distributed_c10d._world.pg_names  # pyright: ignore[reportPrivateUsage]
        return {name: tuple(dist.get_process_group_ranks(group)) for group, name in named.items()}

    def partitions(self) -> dict[str, Groups]:
        """For each of them, how groups like it cut up the mesh, as far as this rank can tell."""
        return partitions(self.mesh, self.known())


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
