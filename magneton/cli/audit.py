"""``magneton audit``."""

from typing import Annotated

import typer

from magneton.cli.options import (
    BatchOption,
    DeviceOption,
    DTypeOption,
    Format,
    FormatOption,
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
    TopOption,
    YesOption,
)

EPILOG = """Examples:

\b
  magneton audit transformers --model gpt2
  magneton audit ./mine.py:build --meter counted:bytes
  magneton audit recorded.mgn --min-share 0
"""


def audit(
    system: Annotated[
        str, typer.Argument(metavar="SYSTEM", help="NAME[:key=value,...], PATH.py:FUNCTION or PROFILE.mgn")
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
    timeout: TimeoutOption = None,
    python: PythonOption = None,
    min_share: Annotated[
        float,
        typer.Option(
            "--min-share", metavar="FRACTION", min=0, max=1, help="What counts, as a share of the step."
        ),
    ] = 0.005,
    top: TopOption = 10,
    output_format: FormatOption = Format.TEXT,
    yes: YesOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what one system wastes by itself: work that nobody needs, with the line that asks for it.

    No rival is needed. What is told follows from the values that flow: results that nobody reads,
    computation on what had been computed before, tensors that are copied to make them longer.
    """
    from magneton.audit.audit import audit as audit_profile
    from magneton.cli.asked import dtype_named, listed, named_pythons
    from magneton.cli.conversation import conversation_with_user
    from magneton.cli.progress import progress_bar
    from magneton.report.output import print_result
    from magneton.settings import Settings
    from magneton.sides import obtain

    settings = Settings(
        model=model, scale=scale, phases=listed(phases), batch=batch, prompt_tokens=prompt_tokens,
        decode_steps=steps, dtype=dtype_named(dtype), seed=seed, meter=meter, device=device,
        threads=threads, rounds=rounds, timeout_s=timeout, python=named_pythons(python),
    )  # fmt: skip
    conversation = conversation_with_user(yes=yes)
    with progress_bar(quiet=quiet) as progress:
        profile = obtain(system, settings, progress, conversation=conversation)
        found = audit_profile(profile, min_share=min_share)
    print_result(found, output_format.value, top=top)
