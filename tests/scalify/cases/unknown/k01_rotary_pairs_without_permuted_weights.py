"""Rotary pairs of neighbours with weights whose rows are meant for pairs of halves."""

from dataclasses import replace

from scalify_cases import load_pair, replicated

_right = load_pair("proved/c02_rotary_halves_or_neighbours")

PAIR = replace(_right, verdict="unknown", inputs=dict.fromkeys(_right.inputs, replicated))
