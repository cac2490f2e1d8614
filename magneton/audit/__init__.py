"""Waste that one profile shows by itself, without a rival."""
