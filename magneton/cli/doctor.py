"""``magneton doctor``."""

from typing import Annotated

import typer

from magneton.cli.options import Format, FormatOption

FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Watch the sensors of boards again, whatever was found before.")
]


def doctor(fresh: FreshOption = False, output_format: FormatOption = Format.TEXT) -> None:
    """Look at this machine's sensors and say what their figures are worth.

    What has to be watched for seconds, the energy counters of boards, is watched once and remembered.
    """
    from magneton.doctor import Surroundings, examine
    from magneton.report.doctor import print_diagnosis

    def say(text: str) -> None:
        typer.echo(text, err=True)

    print_diagnosis(examine(Surroundings(say=say), fresh=fresh), output_format.value)
