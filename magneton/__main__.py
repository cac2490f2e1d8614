"""``python -m magneton`` is ``magneton``."""

from magneton.cli import main

main()
