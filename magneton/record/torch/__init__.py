"""Recording for PyTorch: dataflow, timeline and replay, run inside the system's own interpreter."""
