"""Matching: which operators of two profiles do the same work, and on what evidence."""

from magneton.match.distance import distance
from magneton.match.matching import match
from magneton.match.model import Matching

__all__ = ["Matching", "distance", "match"]
