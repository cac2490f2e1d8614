"""One process per system, in that system's own interpreter, driven over a pipe."""
