"""``magneton calibrate``."""

from pathlib import Path
from typing import Annotated

import typer

from magneton.cli.options import DeviceOption, Format, FormatOption, QuietOption

EPILOG = """Examples:

\b
  magneton calibrate --device cuda:0 --output board.toml
  magneton record ./mine.py:build -o mine.mgn --meter modelled:./board.toml
"""


def calibrate(
    device: DeviceOption = None,
    meter: Annotated[
        str, typer.Option("--meter", metavar="METER", help="auto, nvml, rapl or zeus: one that measures.")
    ] = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The device file, *.toml.  [default: named after it]"
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--budget", metavar="SECONDS", min=1, help="How long it may measure.")
    ] = 600.0,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Of the order of windows and of ranges.")
    ] = 0,
    output_format: FormatOption = Format.TEXT,
    quiet: QuietOption = False,
) -> None:
    """Fit the energy coefficients of this device, for the meter `modelled:FILE`."""
    from magneton.calibrate.command import calibrate_device
    from magneton.calibrate.text import write_calibration
    from magneton.cli.progress import progress_bar

    with progress_bar(quiet=quiet) as progress:
        path, calibration = calibrate_device(
            device or "auto", meter, output, budget_s=budget_s, seed=seed, progress=progress
        )
    write_calibration(calibration, output_format.value)
    typer.echo(f"wrote {path}: --meter modelled:{path}", err=True)
