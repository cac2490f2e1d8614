"""``magneton record``."""

from pathlib import Path
from typing import Annotated

import typer

from magneton.cli.options import (
    BatchOption,
    CacheOption,
    DeviceOption,
    DTypeOption,
    MeterOption,
    ModelOption,
    PhasesOption,
    PromptTokensOption,
    PythonOption,
    QuietOption,
    RoundsOption,
    ScaleOption,
    SeedOption,
    StepsOption,
    ThreadsOption,
    TimeoutOption,
    YesOption,
)

EPILOG = """Examples:

\b
  magneton record transformers --model gpt2 -o transformers.mgn
  magneton record ./mine.py:build -o mine.mgn --meter counted:flops
"""


def record(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="NAME[:key=value,...] or PATH.py:FUNCTION")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The profile to write, *.mgn.")
    ],
    model: ModelOption = None,
    scale: ScaleOption = None,
    phases: PhasesOption = None,
    batch: BatchOption = None,
    prompt_tokens: PromptTokensOption = None,
    steps: StepsOption = None,
    dtype: DTypeOption = None,
    seed: SeedOption = None,
    meter: MeterOption = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    rounds: RoundsOption = None,
    cache: CacheOption = None,
    timeout: TimeoutOption = None,
    python: PythonOption = None,
    yes: YesOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run one system, measure it, and write one portable file for `compare` and `show`."""
    from magneton.cli.asked import cache_named, dtype_named, listed, named_pythons
    from magneton.cli.conversation import conversation_with_user
    from magneton.cli.progress import progress_bar
    from magneton.report.escape import visible_lines
    from magneton.settings import Settings
    from magneton.sides import record_system

    settings = Settings(
        model=model, scale=scale, phases=listed(phases), batch=batch, prompt_tokens=prompt_tokens,
        decode_steps=steps, dtype=dtype_named(dtype), seed=seed, meter=meter, device=device,
        threads=threads, rounds=rounds, cache=cache_named(cache), timeout_s=timeout,
        python=named_pythons(python),
    )  # fmt: skip
    conversation = conversation_with_user(yes=yes)
    with progress_bar(quiet=quiet) as progress:
        profile = record_system(system, settings, progress, output=output, conversation=conversation)
    typer.echo(f"wrote {output}", err=True)
    for doubt in profile.doubts:
        typer.echo(f"doubt: {visible_lines(doubt.text)}", err=True)
