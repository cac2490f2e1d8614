"""Operators that bring data to the host: it waits for the device, and the device then for the host."""

from collections.abc import Iterator

from magneton.audit.model import Sighting
from magneton.audit.step import Step


def host_synchronisations(step: Step) -> Iterator[Sighting]:
    """What waiting costs is not in the cost of the operator, so nothing is claimed to be avoidable."""
    for operator in step.operators:
        if operator.effect == "sync":
            yield Sighting(
                pattern="host synchronisation",
                operators=(operator.op_id,),
                evidence=f"{operator.name} reads a result on the host in the middle of a step",
                change="keep the value on the device, or read it once after the step",
                avoidable=None,
            )
