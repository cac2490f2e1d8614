"""``magneton doctor``."""

from magneton.cli.options import Format, FormatOption


def doctor(output_format: FormatOption = Format.TEXT) -> None:
    """Look at this machine's sensors and say what their figures are worth."""
    from magneton.doctor import examine
    from magneton.report.output import print_result

    print_result(examine(), output_format.value)
