"""Graphs of the user's own model, captured live: this runs PyTorch and their code, loading never does."""

from scalify.capture.capture import capture, captured

__all__ = ["capture", "captured"]
