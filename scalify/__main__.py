"""``python -m scalify`` is ``scalify``."""

from scalify.cli import main

main()
