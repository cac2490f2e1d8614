"""``magneton systems``."""

from magneton.cli.options import Format, FormatOption


def systems(output_format: FormatOption = Format.TEXT) -> None:
    """List the systems that can be run, what is installed of them, and their options."""
    from magneton.report.output import print_result
    from magneton.report.systems import list_systems
    from magneton.system import system_descriptions

    print_result(list_systems(system_descriptions()), output_format.value)
