"""What the shipped devices spend on two operators, by their models: the table in docs/measuring.md.

Deterministic, and the same on every machine:
PYTHONPATH=tests/support python benchmarks/modelled_devices.py
"""

from modelled_work import Call, addition, product, profile_of

from magneton.meters.devices import device_names, read_model
from magneton.profile.modelling import modelled_j
from magneton.quantity import Provenance
from magneton.statistics import Spread, summarise

CALLS = (product(4096), addition(1 << 28))


def rows() -> tuple[str, ...]:
    """One line of a markdown table for each device."""
    return tuple(
        f"| `{name}` | {' | '.join(_energy(name, call) for call in CALLS)} |" for name in device_names()
    )


def _energy(name: str, call: Call) -> str:
    drawn_j = modelled_j(profile_of([call]), read_model(name))[:, 0]
    figure = summarise(drawn_j.tolist(), Provenance.MODELLED, spread=Spread.DRAWS)
    value, low, high = (f"{1e3 * one:,.0f}" for one in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}] mJ"


if __name__ == "__main__":
    print("\n".join(rows()))
