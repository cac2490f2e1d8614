"""Changing a system inside its own worker, before and after it has loaded."""
