"""Graphs as terms: composites taken apart, and every movement of data turned into an index map."""
