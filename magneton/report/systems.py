"""Which systems there are, what they need, where they run, and which options they take."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.envs.listed import ListedSystem, ListedSystems, RemovedEnvironments, ShownSystem
from magneton.envs.place import EnvironmentState
from magneton.report.console import facts_table
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.system import OptionDescription, Step, Variant

SYSTEMS_SCHEMA = "magneton-systems"
SYSTEM_SCHEMA = "magneton-system"
REMOVED_SCHEMA = "magneton-removed-environments"
SYSTEMS_VERSION = 1

Facts = list[tuple[str, Text | str]]


def systems_json(listed: ListedSystems) -> str:
    return document(SYSTEMS_SCHEMA, SYSTEMS_VERSION, listed)


def system_json(shown: ShownSystem) -> str:
    return document(SYSTEM_SCHEMA, SYSTEMS_VERSION, shown)


def removed_json(removed: RemovedEnvironments) -> str:
    return document(REMOVED_SCHEMA, SYSTEMS_VERSION, removed)


def print_systems(listed: ListedSystems, console: Console) -> None:
    """A paragraph for each system."""
    for system in listed.systems:
        console.print(_title(system))
        facts = [*_facts(system), *_places(system), *_options(system)]
        console.print(Padding(facts_table(facts), (0, 0, 1, 3)))
    console.print("A system is also PATH.py:FUNCTION, or a recorded profile PATH.mgn.")


def print_system(shown: ShownSystem, console: Console) -> None:
    """All that is known of one system."""
    system = shown.system
    console.print(_title(system))
    facts = [*_facts(system), *_run(shown), *_places(system)]
    for kind, variant in system.description.variants.items():
        facts += _variant(kind, variant)
    facts += [
        (visible(name), f"{visible(value)} (environment variable)") for name, value in _variables(system)
    ]
    console.print(Padding(facts_table([*facts, *_options(system)]), (0, 0, 0, 3)))


def print_removed(removed: RemovedEnvironments, console: Console) -> None:
    """One line for each environment that is gone."""
    for folder in removed.folders:
        console.print(Text(f"removed {visible(folder)}"), soft_wrap=True)
    if removed.folders:
        console.print(f"{_size(removed.size_bytes)} are free again")
    else:
        console.print("there was nothing to remove")


def _title(system: ListedSystem) -> Text:
    line = Text(visible(system.name), style="bold")
    package = system.description.package
    if system.installed is not None:
        return line.append(f"  {visible(package)} {visible(system.installed)}", style="green")
    ready = [each.kind for each in system.environments if each.state == "ready"]
    if ready:
        return line.append(f"  ready in an environment of its own ({', '.join(ready)})", style="green")
    return line.append("  not installed; made on first use", style="yellow")


def _facts(system: ListedSystem) -> Facts:
    described = system.description
    facts: Facts = [
        ("what", visible(described.description)),
        ("phases", visible(", ".join(described.phases))),
    ]
    if described.models:
        facts.append(("models", visible(", ".join(described.models))))
    return facts


def _options(system: ListedSystem) -> Facts:
    return [(f":{visible(name)}=", _option(option)) for name, option in system.description.options.items()]


def _places(system: ListedSystem) -> Facts:
    """Where it runs: here, or in which environment. One that was never made says nothing if it runs here."""
    facts: Facts = [("runs in", f"this interpreter ({', '.join(system.here)})")] if system.here else []
    for each in system.environments:
        if each.state != "not made" or each.kind not in system.here:
            facts.append((f"for {each.kind}", _place(each, system.description.variants.get(each.kind))))
    return facts


def _place(environment: EnvironmentState, variant: Variant | None) -> Text | str:
    folder = visible(environment.folder)
    match environment.state:
        case "ready":
            return Text(f"ready in {folder}, {_size(environment.size_bytes)}", style="green")
        case "outdated":
            return f"outdated: {folder}, {_size(environment.size_bytes)}; magneton systems remove frees that"
        case "unfinished":
            return f"begun and not finished: {folder}; the next installation goes on"
        case "not made":
            size = _size(variant.size_bytes) if variant else "unknown size"
            return f"no environment yet; about {size}"


def _run(shown: ShownSystem) -> Facts:
    if shown.python is None:
        return [("would run", f"on {visible(shown.device)}, once its environment is made")]
    versions = ", ".join(f"{name} {version}" for name, version in shown.versions.items())
    return [
        ("would run", f"on {visible(shown.device)}, in {visible(shown.python)}"),
        ("versions", visible(versions)),
    ]


def _variant(kind: str, variant: Variant) -> Facts:
    facts: Facts = [(f"{kind} needs", visible(", ".join(variant.requirements)))]
    if variant.python:
        facts.append(("", f"Python {visible(variant.python)}"))
    facts += [(f"{kind} step {number}", _step(step)) for number, step in enumerate(variant.installation(), 1)]
    if variant.size_bytes is not None:
        facts.append((f"{kind} size", f"about {_size(variant.size_bytes)}"))
    if variant.note:
        facts.append((f"{kind} note", visible(variant.note)))
    return facts


def _step(step: Step) -> str:
    if step.remove:
        return visible(f"remove {', '.join(step.remove)}")
    alone = "" if step.with_dependencies else ", without what they depend on"
    return visible(f"install {', '.join(step.install)}{alone}")


def _variables(system: ListedSystem) -> list[tuple[str, str]]:
    return list(system.description.environment.items())


def _size(size_bytes: int | None) -> str:
    return "unknown size" if size_bytes is None else f"{size_bytes / 1e9:.2f} GB"


def _option(option: OptionDescription) -> str:
    values = ", ".join(option.choices) if option.choices else option.type
    default = "must be given" if option.default is None else f"default {option.default or 'none'}"
    return visible(f"{option.help} ({values}; {default})")
