"""Why a sensor cannot be used. Two children, because ``auto`` and ``doctor`` treat them differently."""

from magneton.errors import MagnetonError


class SensorAbsent(MagnetonError):
    """There is no such sensor here: no driver, no device, no package that reads it."""


class SensorUnusable(MagnetonError):
    """The sensor exists and cannot be read: permission, an unsupported part, a shared board."""
