"""Functions of JAX, captured from their jaxprs. The package is imported when there is such a function."""

from scalify.capture.jax.program import jax_graph

__all__ = ["jax_graph"]
