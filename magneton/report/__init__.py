"""Reports: what was found out, for people (text) and for programs (JSON)."""
