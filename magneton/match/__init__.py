"""Matching: which operators of two profiles do the same work, and on what evidence."""
