"""The graph that every front end loads into and every later stage reads. Knows no framework."""
