"""vLLM: its engine, what it is given, and tokens that it is held to."""
