"""What holds for every test: properties are about results, not about how fast a shared machine is."""

import signal

from hypothesis import settings

settings.register_profile("magneton", deadline=None)
settings.load_profile("magneton")

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that: programs under test
# would never see the interrupt that a test sends them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
