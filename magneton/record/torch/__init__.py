"""Recording for PyTorch: the dataflow, timeline and replay passes, run inside the system's own interpreter."""
