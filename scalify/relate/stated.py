"""Relations that the user states, and the strict reader of the TOML file they stand in.

::

    [mesh]                                  # names for the axes of programs that only count ranks
    dp = 2
    tp = 4

    [inputs.wq]                             # an input of the candidate
    baseline = "layers.0.wq"                # left out: of the same name
    shard = { dim = 0, axes = ["tp"] }      # or an array of such; or: replicated = true; or: inferred

    [inputs.wk]
    shard = { dim = 0, axes = ["tp"], blocks = 2 }      # two ranks next to each other hold one block

    [inputs.wqkv]
    axis = 0                                # several inputs of the baseline, one after the other
    parts = [
      { baseline = "wq", shard = { dim = 0, axes = ["tp"] } },
      { baseline = "wkv", window = { start = 0, size = 512 }, shard = { dim = 0, axes = ["tp"] } },
    ]

    [inputs.scratch]
    free = true                             # holds nothing of the baseline: any values have to do

    [outputs.logits]
    shard = { dim = 2, axes = ["tp"] }

Several inputs may each hold the whole of one of the baseline's, as tied weights on two pipeline stages do.
A key that has no meaning is an error that names the nearest one that has.
"""

import reprlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from scalify.errors import InvalidRelations
from scalify.ir.mesh import Mesh

LARGEST_BYTES = 16_000_000
Table = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSplit:
    """A dimension cut over mesh axes; in fewer ``blocks`` than ranks, neighbours hold the same one."""

    dim: int
    axes: tuple[str, ...]
    blocks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """``size`` elements of dimension ``dim`` from ``start``."""

    dim: int
    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPart:
    """What is said of an input of the baseline. ``splits`` is None where the layout is left to inference."""

    baseline: str
    splits: tuple[StatedSplit, ...] | None = None
    window: Window | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedInput:
    """An input of the candidate: parts of inputs of the baseline, one after the other along ``axis``.

    Without parts it is free: it holds nothing of the baseline.
    """

    candidate: str
    parts: tuple[StatedPart, ...]
    axis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedOutput:
    """An output of the candidate: which of the baseline's it is, and in which layout, if that is said."""

    candidate: str
    baseline: str
    splits: tuple[StatedSplit, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """All that the user states. It goes before what is inferred."""

    inputs: tuple[StatedInput, ...] = ()
    outputs: tuple[StatedOutput, ...] = ()
    mesh: Mesh | None = None


def read_stated(path: Path) -> Stated:
    """The relations stated in a TOML file. Raises InvalidRelations where it says anything else."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InvalidRelations(f"cannot read {path}: {error.strerror}", hint="check the path") from None
    if len(content) > LARGEST_BYTES:
        raise InvalidRelations(f"{path} is larger than {LARGEST_BYTES} bytes", hint="is it the right file?")
    try:
        return parse_stated(content.decode())
    except UnicodeDecodeError as error:
        raise InvalidRelations(f"{path.name} is no text: {error.reason}", hint="write it in UTF-8") from None
    except InvalidRelations as error:
        raise InvalidRelations(f"{path.name}: {error}", hint=error.hint) from None


def parse_stated(text: str) -> Stated:
    """The relations stated in TOML."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRelations(f"not valid TOML: {error}", hint="correct the file there") from None
    _check_keys(table, ("inputs", "outputs", "mesh"), "the file")
    inputs, outputs = _table(table.get("inputs", {}), "inputs"), _table(table.get("outputs", {}), "outputs")
    return Stated(
        inputs=tuple(_input(name, _table(value, f"input {name!r}")) for name, value in inputs.items()),
        outputs=tuple(_output(name, _table(value, f"output {name!r}")) for name, value in outputs.items()),
        mesh=_mesh(_table(table["mesh"], "mesh")) if "mesh" in table else None,
    )


def _mesh(table: Table) -> Mesh:
    return Mesh(axes=tuple((name, _whole(size, f"mesh axis {name!r}", 1)) for name, size in table.items()))


def _input(name: str, table: Table) -> StatedInput:
    where = f"input {name!r}"
    if "free" in table:
        if table["free"] is not True or len(table) > 1:
            raise InvalidRelations(
                f"{where}: free is true or left out, and goes without anything else",
                hint="keep free = true alone",
            )
        return StatedInput(candidate=name, parts=())
    if "parts" not in table:
        _check_keys(table, ("baseline", "replicated", "shard", "window", "parts", "axis", "free"), where)
        if "axis" in table:
            raise InvalidRelations(f"{where}: axis is that of parts, and there are none", hint="leave it out")
        return StatedInput(candidate=name, parts=(_part(table, where, name, 0),))
    _check_keys(table, ("parts", "axis"), where)
    axis = _whole(table.get("axis", 0), f"{where}: axis", 0)
    parts = tuple(
        _part(_table(value, f"{where}: a part"), f"{where}: part {number}", None, axis)
        for number, value in enumerate(_array(table["parts"], f"{where}: parts"), start=1)
    )
    if not parts:
        raise InvalidRelations(f"{where} has no parts", hint="say of which inputs of the baseline it is made")
    return StatedInput(candidate=name, parts=parts, axis=axis)


def _part(table: Table, where: str, name: str | None, axis: int) -> StatedPart:
    _check_keys(table, ("baseline", "replicated", "shard", "window"), where)
    if "baseline" not in table and name is None:
        raise InvalidRelations(f"{where} names no baseline", hint='say: baseline = "..."')
    window = _window(_table(table["window"], f"{where}: window"), where, axis) if "window" in table else None
    splits = _splits(table, where)
    unsaid = splits is None and (name is None or window is not None)
    return StatedPart(
        baseline=_text(table.get("baseline", name), f"{where}: baseline"),
        splits=() if unsaid else splits,
        window=window,
    )


def _output(name: str, table: Table) -> StatedOutput:
    where = f"output {name!r}"
    _check_keys(table, ("baseline", "replicated", "shard"), where)
    baseline = _text(table.get("baseline", name), f"{where}: baseline")
    return StatedOutput(candidate=name, baseline=baseline, splits=_splits(table, where))


def _splits(table: Table, where: str) -> tuple[StatedSplit, ...] | None:
    if "replicated" in table:
        if table["replicated"] is not True or "shard" in table:
            raise InvalidRelations(
                f"{where}: replicated is true or left out, and goes without shard", hint="keep one of the two"
            )
        return ()
    if "shard" not in table:
        return None
    stated = table["shard"]
    given = stated if isinstance(stated, list) else [stated]
    return tuple(_split(_table(value, f"{where}: shard"), where) for value in _array(given, where))


def _split(table: Table, where: str) -> StatedSplit:
    _check_keys(table, ("dim", "axes", "blocks"), f"{where}: shard")
    for key in ("dim", "axes"):
        if key not in table:
            raise InvalidRelations(f"{where}: shard has no {key}", hint='shard = { dim = 0, axes = ["tp"] }')
    axes = tuple(_text(axis, f"{where}: an axis") for axis in _array(table["axes"], f"{where}: axes"))
    if not axes or len(set(axes)) < len(axes):
        raise InvalidRelations(f"{where}: axes {list(axes)} is empty or repeats", hint="name each once")
    return StatedSplit(
        dim=_whole(table["dim"], f"{where}: dim", 0),
        axes=axes,
        blocks=_whole(table["blocks"], f"{where}: blocks", 1) if "blocks" in table else None,
    )


def _window(table: Table, where: str, axis: int) -> Window:
    _check_keys(table, ("dim", "start", "size"), f"{where}: window")
    if "size" not in table:
        raise InvalidRelations(f"{where}: window has no size", hint="say: window = { start = 0, size = 512 }")
    return Window(
        dim=_whole(table.get("dim", axis), f"{where}: window dim", 0),
        start=_whole(table.get("start", 0), f"{where}: window start", 0),
        size=_whole(table["size"], f"{where}: window size", 1),
    )


def _check_keys(table: Table, valid: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in valid:
            raise unknown(f"{where}: key", key, valid)


def unknown(what: str, name: str, valid: Iterable[str]) -> InvalidRelations:
    """The error for a name that is none of ``valid``: with the nearest of them, if one is near."""
    names = list(valid)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    some = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {some}" if names else "there are none"
    return InvalidRelations(f"{what} {name!r} is not known", hint=hint)


def _table(value: object, what: str) -> Table:
    if not isinstance(value, dict):
        raise InvalidRelations(f"{what} is {_shown(value)}, not a table", hint="write { ... }")
    return {str(key): entry for key, entry in value.items()}


def _array(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidRelations(f"{what} is {_shown(value)}, not an array", hint="write [ ... ]")
    return list(value)


def _shown(value: object) -> str:
    return reprlib.repr(value)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidRelations(f"{what} is {_shown(value)}, not text", hint="write it in quotes")
    return value


def _whole(value: object, what: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidRelations(f"{what} is {_shown(value)}, not a whole number", hint=f"{least} or more")
    return value
