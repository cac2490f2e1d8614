"""Recording: run a system's steps four times over, each pass looking at another thing."""
