"""What a verification answered, for people and for programs. Nothing here needs a prover or a loader."""
