"""In which number formats two programs compute that are equal over the reals, or may be."""
