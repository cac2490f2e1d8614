"""Data files that ship with the package (``configs/``), and a strict reader of TOML into frozen dataclasses.

A key that a dataclass does not have is an error that names the nearest one it has: a misspelt setting
must never be a silently ignored one.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from magneton.errors import MagnetonError
from magneton.names import unknown

LARGEST_BYTES = 1_000_000
TYPE_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}

T = TypeVar("T")


def configs_folder() -> Path:
    """Where the data files lie: inside an installed package, or beside the package in a checkout."""
    package = Path(__file__).parent
    installed = package / "configs_data"
    return installed if installed.is_dir() else package.parent / "configs"


def config_path(kind: str, name: str) -> Path:
    """The data file ``configs/KIND/NAME.toml``; an unknown name is an error that offers the nearest one."""
    known = config_names(kind)
    if name not in known:
        raise unknown(kind.removesuffix("s"), name, known)
    return configs_folder() / kind / f"{name}.toml"


def config_names(kind: str) -> tuple[str, ...]:
    """Which data files of one kind ("systems", "models", "devices") ship with the package."""
    return tuple(sorted(path.stem for path in (configs_folder() / kind).glob("*.toml")))


def read_config(path: Path, kind: type[T]) -> T:
    """The file at ``path`` as an instance of the dataclass ``kind``; every deviation is a MagnetonError."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_BYTES + 1)
        if len(text) > LARGEST_BYTES:
            raise MagnetonError(f"{path} is larger than {LARGEST_BYTES} bytes", hint="is it the right file?")
        table = tomllib.loads(text.decode())
    except OSError as error:
        raise MagnetonError(f"cannot read {path}: {error.strerror}", hint="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MagnetonError(f"{path} is not valid TOML: {error}", hint="correct the file there") from error
    return _record(kind, table, str(path))


def _record(kind: type[Any], table: Mapping[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    for key in table:
        if key not in known:
            error = unknown("key", key, known)
            raise MagnetonError(f"{where}: {error}", hint=error.hint)
    for name, field in known.items():
        if name not in table and field.default is MISSING and field.default_factory is MISSING:
            raise MagnetonError(f"{where}: key {name!r} is missing", hint=f"add {name} = ...")
    values = {key: _converted(value, hints[key], f"{where}: {key}") for key, value in table.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise MagnetonError(f"{where}: {error}", hint="correct the file there") from error


def _converted(value: object, hint: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is object:
        return value
    if origin in (Union, UnionType):
        (hint,) = (each for each in arguments if each is not NoneType)
        return _converted(value, hint, where)
    if origin is Literal:
        if value not in arguments:
            error = unknown("value", str(value), [str(each) for each in arguments])
            raise MagnetonError(f"{where}: {error}", hint=error.hint)
        return value
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint, _expected(value, dict, "a table", where), where)
    if origin is tuple:
        items = _expected(value, list, "a list", where)
        return tuple(_converted(item, arguments[0], f"{where}[{i}]") for i, item in enumerate(items))
    if origin is not None:
        table = _expected(value, dict, "a table", where)
        return {key: _converted(item, arguments[1], f"{where}.{key}") for key, item in table.items()}
    return _scalar(value, hint, where)


def _scalar(value: object, hint: type, where: str) -> object:
    if hint is float and type(value) is int:
        return float(value)
    return _expected(value, hint, TYPE_NAMES[hint], where)


def _expected(value: object, kind: type, description: str, where: str) -> Any:
    if type(value) is not kind:  # not isinstance: true is no number
        raise MagnetonError(f"{where} must be {description}, not {value!r}", hint="correct the file there")
    return value
