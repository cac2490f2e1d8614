"""magneton: which operations of an ML system spend energy that a rival does not, and why."""

__version__ = "0.1.0"
