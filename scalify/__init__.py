"""Proves two computational graphs equivalent, or says what stands in the way."""
