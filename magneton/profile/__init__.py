"""The profile: everything one recording found out about one system, and its file."""
