"""``magneton compare``."""

from pathlib import Path
from typing import Annotated

import typer

from magneton.cli.options import (
    BatchOption,
    CacheOption,
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
  magneton compare transformers:attn_implementation=eager transformers --model gpt2
  magneton compare transformers torch --phases prefill --save profiles
  magneton compare ./mine.py:build_old ./mine.py:build_new
  magneton compare transformers:attn_implementation=eager transformers --model gpt2 --confirm
  magneton compare baseline.mgn candidate.mgn --format json
"""


def compare(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="NAME[:key=value,...], PATH.py:FUNCTION or PROFILE.mgn")
    ],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="likewise")],
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
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FOLDER", help="Keep both profiles there.")
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold", metavar="FRACTION", min=0, help="Energy above the lean side's that counts."
        ),
    ] = 0.10,
    min_share: Annotated[
        float,
        typer.Option(
            "--min-share",
            metavar="FRACTION",
            min=0,
            max=1,
            help="Excess that counts, as a share of the step.",
        ),
    ] = 0.005,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            metavar="FRACTION",
            min=0,
            help="Of outputs, times their rms; by dtype if not given.",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="LIST", help="Exit with 3 on: any, waste, trade-off, or a kind."),
    ] = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm", help="Run the costly side again with each candidate cause set as on the other."
        ),
    ] = False,
    top: TopOption = 10,
    output_format: FormatOption = Format.TEXT,
    yes: YesOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show where two systems spend different energy on the same work.

    Runs both in turns (or reads what was recorded before), aligns their operators by the values that
    flow, and prints what one side spends above the other, with the lines of code behind it.
    """
    from magneton.cli.asked import cache_named, dtype_named, exit_status, failing, listed, named_pythons
    from magneton.cli.conversation import conversation_with_user
    from magneton.cli.progress import progress_bar
    from magneton.compare.model import Criteria
    from magneton.compare.profiles import compare_profiles
    from magneton.diagnose.confirm import confirm as confirm_causes
    from magneton.report.output import print_result
    from magneton.settings import Settings
    from magneton.sides import obtain_pair, rerunning, systems_to_run

    fails = failing(fail_on)
    settings = Settings(
        model=model, scale=scale, phases=listed(phases), batch=batch, prompt_tokens=prompt_tokens,
        decode_steps=steps, dtype=dtype_named(dtype), seed=seed, meter=meter, device=device,
        threads=threads, rounds=rounds, cache=cache_named(cache), timeout_s=timeout,
        python=named_pythons(python),
    )  # fmt: skip
    if confirm:
        systems_to_run(baseline, candidate)
    criteria = Criteria(threshold=threshold, min_share=min_share, tolerance=tolerance)
    conversation = conversation_with_user(yes=yes)
    with progress_bar(quiet=quiet) as progress:
        profiles = obtain_pair(baseline, candidate, settings, progress, save=save, conversation=conversation)
        comparison = compare_profiles(*profiles, criteria)
        if confirm:
            with rerunning(baseline, candidate, settings, progress, conversation) as rerun:
                comparison = confirm_causes(comparison, profiles, rerun)
    print_result(comparison, output_format.value, top=top)
    raise typer.Exit(exit_status(comparison, fails))
