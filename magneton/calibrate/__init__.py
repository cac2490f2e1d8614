"""Fitting the energy coefficients of the device at hand, where a sensor reads it."""
