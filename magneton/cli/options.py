"""The options that commands share, each written down once."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from magneton.names import unknown

LARGEST_SEED = 2**32 - 1  # of NumPy's global generator, which a callable may draw from
Choice = TypeVar("Choice", bound=StrEnum)


class Format(StrEnum):
    """How results are written to standard output."""

    TEXT = "text"
    JSON = "json"


class DTypeName(StrEnum):
    """The number format of weights and activations."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class CacheName(StrEnum):
    """In which state an operator that is repeated finds the caches."""

    WARM = "warm"
    COLD = "cold"


def one_of(kind: type[Choice], what: str) -> Callable[[str], Choice]:
    """Reads a member of ``kind`` by its value; for another one, the error offers the nearest."""

    def read(text: str) -> Choice:
        valid = [str(member) for member in kind]
        if text not in valid:
            raise unknown(what, text, valid)
        return kind(text)

    return read


ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODEL", help="Preset (llama, gpt2), folder or hub id.  [default: llama]"
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option("--scale", metavar="SCALE", help="Size of a preset: tiny or small.  [default: small]"),
]
PhasesOption = Annotated[
    str | None,
    typer.Option("--phases", metavar="LIST", help="What is run, in order.  [default: prefill,decode]"),
]
BatchOption = Annotated[
    int | None, typer.Option("--batch", metavar="N", min=1, help="Prompts at once.  [default: 1]")
]
PromptTokensOption = Annotated[
    int | None,
    typer.Option("--prompt-tokens", metavar="N", min=1, help="Length of each prompt.  [default: 64]"),
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", metavar="N", min=1, help="Tokens decoded per prompt.  [default: 4]")
]
DTypeOption = Annotated[
    DTypeName | None,
    typer.Option(
        "--dtype",
        parser=one_of(DTypeName, "dtype"),
        metavar="DTYPE",
        help="Of weights and activations: float32, bfloat16 or float16.  [default: float32]",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        max=LARGEST_SEED,
        help="Of token ids and of a callable's generators.  [default: 0]",
    ),
]
MeterOption = Annotated[
    str | None,
    typer.Option(
        "--meter", metavar="METER", help="auto, modelled, nvml, zeus, counted:flops, ...  [default: auto]"
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="DEVICE", help="auto, cpu or cuda:N.  [default: auto]")
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, max=1024, help="Processor threads of a system.  [default: 1]"
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        "--rounds", metavar="N", min=1, help="Measured blocks of each phase and side.  [default: 7]"
    ),
]
CacheOption = Annotated[
    CacheName | None,
    typer.Option(
        "--cache",
        parser=one_of(CacheName, "state of the caches"),
        metavar="STATE",
        help="Caches for operators that are repeated: warm or cold.  [default: warm]",
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long a system may stay silent."),
]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="[NAME=]PATH",
        help="Interpreter for all systems, or for one; repeatable.  [default: this one, or an environment]",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Agree to what would be asked.")]
TopOption = Annotated[
    int, typer.Option("--top", metavar="N", min=1, help="Findings and table rows to print.")
]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        parser=one_of(Format, "format"),
        metavar="FORMAT",
        help="Of what is written to standard output: text or json.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
