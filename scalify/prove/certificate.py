"""A proof that can be checked without the engine that found it."""

from collections.abc import Mapping
from dataclasses import dataclass

from scalify.layout.views import View
from scalify.prove.engine import Derivation
from scalify.prove.region import Region


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionCertificate:
    """The proof of one region: derivations in an order in which premises come first.

    ``views`` are the views that derivations name. Maps and operations are those of the region's terms, which
    the checker makes again. ``layouts`` is what was shown of each goal.
    """

    region: Region
    derivations: tuple[Derivation, ...]
    views: Mapping[str, View]
    layouts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Proofs of distinct regions, and which of them stands for each region of the two programs, in order."""

    regions: tuple[RegionCertificate, ...]
    used: tuple[int, ...]
    rules_version: int
