"""Matching: which operators of two profiles do the same work, and on what evidence."""

from magneton.match.divergence import Divergence, first_divergence
from magneton.match.matching import match
from magneton.match.model import Matching
from magneton.profile.distance import distance

__all__ = ["Divergence", "Matching", "distance", "first_divergence", "match"]
