"""What holds for every test: properties are about results, not about how fast a shared machine is."""

from hypothesis import settings

settings.register_profile("magneton", deadline=None)
settings.load_profile("magneton")
