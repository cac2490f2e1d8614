"""What can be measured on this machine, and what to believe of it.

In: the machine, looked at without importing a framework and without changing anything. Out: a
``Diagnosis``, plain data for the report.
"""

from magneton.doctor.examine import examine
from magneton.doctor.model import Check, Conditions, Diagnosis, State
from magneton.doctor.surroundings import Surroundings

__all__ = ["Check", "Conditions", "Diagnosis", "State", "Surroundings", "examine"]
