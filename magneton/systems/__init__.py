"""Systems: how each is described (``configs/systems``) and how its adapter runs it."""
