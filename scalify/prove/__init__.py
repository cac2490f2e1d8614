"""Terms of two programs -> which outputs are proved equal, from which rules, and what stands in the way."""
