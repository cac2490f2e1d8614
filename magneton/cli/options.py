"""The options that commands share, each written down once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How results are written to standard output."""

    TEXT = "text"
    JSON = "json"


class DTypeName(StrEnum):
    """The number format of weights and activations."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


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
    DTypeName | None, typer.Option("--dtype", help="Of weights and activations.  [default: float32]")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, help="Of the token ids.  [default: 0]")
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
    typer.Option("--threads", metavar="N", min=1, help="Processor threads of a system.  [default: 1]"),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        "--rounds", metavar="N", min=1, help="Measured blocks of each phase and side.  [default: 7]"
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long a system may stay silent."),
]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python", metavar="PATH", help="Interpreter with the systems' packages.  [default: this one]"
    ),
]
TopOption = Annotated[
    int, typer.Option("--top", metavar="N", min=1, help="Findings and table rows to print.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="Of what is written to standard output.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
