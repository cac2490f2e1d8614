"""The prover in a process of its own, with limits: whatever becomes of it, the parent lives and answers."""
