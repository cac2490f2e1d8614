"""What is each tensor that nobody produced in the trace? Parameters, buffers and inputs by their names.

In: the named roots of a system. Out: for a tensor, its role and name. Tied weights are one tensor with
the first of its names. A view of a parameter that was made before the step is a constant under that name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from magneton.profile.model import Role
from magneton.record.torch.calls import tensors_in
from magneton.record.torch.hidden import HIDDEN_ROOT
from magneton.record.torch.internals import storage_identity
from magneton.record.torch.modules import joined
from magneton.record.torch.storage import Geometry, geometry_of, has_storage, region_of

INPUT_ROOT = "input"  # the root that maps names to tensors the step is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One named tensor. Held strongly: for as long as a pass runs, its storage is the one that was named."""

    tensor: Tensor
    geometry: Geometry
    role: Role
    name: str


class Sources:
    """The named tensors of a system, by storage."""

    def __init__(self, roots: Mapping[str, object]) -> None:
        self._by_storage: dict[int, list[Named]] = {}
        for named in _named_tensors(roots):
            if has_storage(named.tensor):
                self._by_storage.setdefault(storage_identity(named.tensor), []).append(named)

    def describe(self, tensor: Tensor) -> tuple[Role, str]:
        """The role and name of a tensor that existed before the step."""
        candidates = self._by_storage.get(storage_identity(tensor), []) if has_storage(tensor) else []
        geometry = geometry_of(tensor) if candidates else None
        for named in candidates:
            if named.geometry == geometry:
                return named.role, named.name
        if geometry is None:
            return "constant", ""
        region = region_of(geometry)
        for named in candidates:
            if region_of(named.geometry).overlaps(region):
                return "input" if named.role == "input" else "constant", named.name
        return "constant", ""

    def lasting(self) -> Iterator[Tensor]:
        """Parameters and buffers: what lives on from phase to phase."""
        for named in (named for group in self._by_storage.values() for named in group):
            if named.role in ("parameter", "buffer"):
                yield named.tensor


def _named_tensors(roots: Mapping[str, object]) -> Iterator[Named]:
    for root, thing in roots.items():
        if isinstance(thing, nn.Module):
            for name, parameter in thing.named_parameters():
                yield _named(parameter, "parameter", joined(root, name))
            for name, buffer in thing.named_buffers():
                yield _named(buffer, "buffer", joined(root, name))
        elif root == HIDDEN_ROOT and isinstance(thing, Mapping):
            for path, weight in cast(Mapping[str, Tensor], thing).items():
                yield _named(weight, "parameter", f"{path}.weight")
        elif root == INPUT_ROOT and isinstance(thing, Mapping):
            for name, value in cast(Mapping[str, object], thing).items():
                tensors = tuple(tensors_in(value))
                for place, tensor in enumerate(tensors):
                    yield _named(tensor, "input", name if len(tensors) == 1 else f"{name}.{place}")


def _named(tensor: Tensor, role: Role, name: str) -> Named:
    return Named(tensor=tensor, geometry=geometry_of(tensor), role=role, name=name)
