"""Which system: the text on the command line becomes a checked name and options.

Systems are described by data (``configs/systems/NAME.toml``); nothing is imported to read, list or check
them. The adapters that run them live in ``magneton/systems``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from magneton.configs import config_names, config_path, read_config
from magneton.errors import MagnetonError
from magneton.names import nearest, unknown
from magneton.workload import Phase

CALLABLE = "callable"  # the system that ``path.py:function`` stands for
PROFILE_SUFFIX = ".mgn"

Kind = Literal["cpu", "cuda"]  # of a device


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDescription:
    """One option a system offers. Without a default it must be given. Values stay text throughout."""

    type: Literal["choice", "int", "text"]
    help: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    least: int = 0  # of a whole number


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One act of an installation: packages that come, or packages that go."""

    install: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    with_dependencies: bool = True

    def __post_init__(self) -> None:
        if bool(self.install) == bool(self.remove):
            raise ValueError("a step either installs something or removes something")
        if self.remove and not self.with_dependencies:
            raise ValueError("with_dependencies belongs to a step that installs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a system needs on one kind of device, and how an environment of its own is made.

    ``requirements`` decide whether an interpreter will do. ``size_bytes`` is what an environment takes on the
    disk, roughly. ``python`` says which versions can run it (">=3.10,<3.14"); ``note`` is for whoever is
    asked whether to install.
    """

    requirements: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    size_bytes: int | None = None
    python: str | None = None
    package: str | None = None  # where it is not the system's own
    note: str | None = None

    def installation(self) -> tuple[Step, ...]:
        """The steps in order; without any, what is required is installed."""
        return self.steps or (Step(install=self.requirements),)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemDescription:
    """What is known of a system without running it."""

    description: str
    package: str  # the distribution whose version is the system's
    frameworks: tuple[str, ...]
    phases: tuple[Phase, ...]
    variants: Mapping[Kind, Variant]
    options: Mapping[str, OptionDescription] = field(default_factory=dict[str, OptionDescription])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    models: tuple[str, ...] = ()  # architectures it can run; empty: no list is kept
    grad_mode: Literal["inference", "no_grad"] | None = None  # the only one it runs under; None: any
    spare_positions: int = 0  # of the model that it wants beyond those of the workload
    supports: str | None = None  # versions of the system that its adapter is written for: ">=0.32,<0.33"

    def package_on(self, kind: Kind) -> str:
        """The distribution that is the system on this kind of device."""
        return self.variants[kind].package or self.package


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec:
    """A system to run: a name that exists, and the options that were given, all valid."""

    name: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProfile:
    """A side that was recorded before: there is a file to read and nothing to run."""

    path: Path


def system_label(name: str, options: Mapping[str, str]) -> str:
    """As the user would type it. Options may come from a profile and lack what a callable needs."""
    if name == CALLABLE and {"path", "function"} <= options.keys():
        return f"{options['path']}:{options['function']}"
    given = ",".join(f"{key}={value}" for key, value in options.items())
    return f"{name}:{given}" if given else name


def parse_system(text: str) -> SystemSpec | RecordedProfile:
    """``NAME[:key=value,...]``, ``path.py:function`` or ``profile.mgn``."""
    if text.endswith(PROFILE_SUFFIX):
        return RecordedProfile(path=Path(text))
    head, separator, tail = text.rpartition(":")
    if head.endswith(".py"):
        return _callable(head, tail)
    if text.endswith(".py"):
        raise MagnetonError(f"{text!r} names no function", hint=f"write {text}:FUNCTION")
    name, separator, tail = text.partition(":")
    description = describe(name)
    if name == CALLABLE:
        raise MagnetonError("a callable is named by its file", hint="write PATH.py:FUNCTION")
    given: dict[str, str] = {}
    for item in tail.split(",") if separator else ():
        key, equals, value = item.partition("=")
        if not equals:
            raise MagnetonError(
                f"{item!r} in {text!r} is not key=value", hint=_option_hint(item, description)
            )
        if key in given:
            raise MagnetonError(f"option {key!r} is given twice in {text!r}", hint="keep one of them")
        given[key] = value
    complete_options(name, given)
    return SystemSpec(name=name, options=given)


def complete_options(name: str, given: Mapping[str, str]) -> Mapping[str, str]:
    """``given`` with defaults for the rest; an unknown key, a wrong or a missing value is a MagnetonError."""
    offered = describe(name).options
    for key, value in given.items():
        if key not in offered:
            raise unknown(f"option of {name}", key, offered)
        _check_value(f"{name}:{key}", value, offered[key])
    defaults = {key: option.default for key, option in offered.items()}
    missing = [key for key, default in defaults.items() if default is None and key not in given]
    if missing:
        raise MagnetonError(f"{name} needs a value for {missing[0]!r}", hint=f"write {name}:{missing[0]}=...")
    return {**{key: default for key, default in defaults.items() if default is not None}, **given}


def describe(name: str) -> SystemDescription:
    """The description of one system; an unknown name is an error that offers the nearest one."""
    return read_config(config_path("systems", name), SystemDescription)


def system_descriptions() -> Mapping[str, SystemDescription]:
    """Every system's description by name."""
    return {name: describe(name) for name in config_names("systems")}


def installed_version(package: str) -> str | None:
    """The version in this interpreter, without importing it; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _callable(path: str, function: str) -> SystemSpec:
    if not function.isidentifier():
        raise MagnetonError(f"{function!r} is not the name of a function", hint=f"write {path}:FUNCTION")
    file = Path(path).expanduser()
    if not file.is_file():
        raise MagnetonError(f"no file {path}", hint="check the path; it is taken from the current folder")
    return SystemSpec(name=CALLABLE, options={"path": str(file.resolve()), "function": function})


def _check_value(what: str, value: str, option: OptionDescription) -> None:
    if option.type == "choice" and value not in option.choices:
        raise unknown(f"value for {what}:", value, option.choices)
    if option.type == "int" and not (value.isdecimal() and int(value) >= option.least):
        least = f" of at least {option.least}" if option.least else ""
        raise MagnetonError(f"{what} must be a whole number{least}, not {value!r}", hint=option.help)


def _option_hint(item: str, description: SystemDescription) -> str:
    for key, option in description.options.items():
        if item in option.choices:
            return f"did you mean {key}={item}?"
    close = nearest(item, description.options)
    return f"did you mean {close}=...?" if close else f"options: {', '.join(description.options) or 'none'}"
