"""Models: a preset, a local folder or a hub id becomes one folder that every system can load."""
