"""Meters: what turns a window of time into joules, or says that it cannot."""
