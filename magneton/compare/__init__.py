"""Comparing: what one side spends on the same work above the other, and how sure that is."""
