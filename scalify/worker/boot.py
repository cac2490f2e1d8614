"""The file that the worker's interpreter runs: ``python -P .../scalify/worker/boot.py``.

``-P`` keeps the current folder off the path: a file there that is called like a module of ours would be
executed. So this package is made importable from the place where this file lies, and nothing beside it.
"""

import importlib.util
import sys
from pathlib import Path


def _make_importable() -> None:
    folder = Path(__file__).resolve().parent.parent
    spec = importlib.util.spec_from_file_location(
        "scalify", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {folder}")
    package = importlib.util.module_from_spec(spec)
    sys.modules["scalify"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _make_importable()
    from scalify.worker.serve import main

    main()
