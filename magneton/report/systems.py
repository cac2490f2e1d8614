"""Which systems there are, what they need, and which options they take."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.report.console import facts_table
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.system import OptionDescription, SystemDescription, installed_version

SYSTEMS_SCHEMA = "magneton-systems"
SYSTEMS_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSystem:
    """A system and the version of it that this interpreter has; None where it has none."""

    name: str
    installed: str | None
    description: SystemDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSystems:
    systems: tuple[ListedSystem, ...]


def list_systems(descriptions: Mapping[str, SystemDescription]) -> ListedSystems:
    """Every described system, with what is installed of it."""
    return ListedSystems(
        systems=tuple(
            ListedSystem(name=name, installed=installed_version(description.package), description=description)
            for name, description in sorted(descriptions.items())
        )
    )


def systems_json(listed: ListedSystems) -> str:
    return document(SYSTEMS_SCHEMA, SYSTEMS_VERSION, listed)


def print_systems(listed: ListedSystems, console: Console) -> None:
    """A paragraph for each system."""
    for system in listed.systems:
        console.print(_title(system))
        console.print(Padding(facts_table(_facts(system)), (0, 0, 1, 3)))
    console.print("A system is also PATH.py:FUNCTION, or a recorded profile PATH.mgn.")


def _title(system: ListedSystem) -> Text:
    line = Text(visible(system.name), style="bold")
    package = system.description.package
    if system.installed is None:
        return line.append(f"  {visible(package)} is not installed here", style="yellow")
    return line.append(f"  {visible(package)} {visible(system.installed)}", style="green")


def _facts(system: ListedSystem) -> list[tuple[str, Text | str]]:
    described = system.description
    facts: list[tuple[str, Text | str]] = [
        ("what", visible(described.description)),
        ("phases", visible(", ".join(described.phases))),
    ]
    if described.models:
        facts.append(("models", visible(", ".join(described.models))))
    for name, option in described.options.items():
        facts.append((f":{visible(name)}=", _option(option)))
    return facts


def _option(option: OptionDescription) -> str:
    values = ", ".join(option.choices) if option.choices else option.type
    default = "must be given" if option.default is None else f"default {option.default or 'none'}"
    return visible(f"{option.help} ({values}; {default})")
