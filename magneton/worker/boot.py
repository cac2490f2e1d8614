"""The file that a system's own interpreter runs: ``PYTHON .../magneton/worker/boot.py``.

That interpreter has no magneton installed and must keep seeing exactly its own packages, so just the one
package is made importable, from the folder this file lies in; the folder's neighbours stay invisible.
"""

import importlib.util
import sys
from pathlib import Path

NEEDED = (3, 11)


def make_importable() -> None:
    folder = Path(__file__).resolve().parent.parent
    sys.path[:] = [place for place in sys.path if not place or Path(place).resolve() != folder / "worker"]
    spec = importlib.util.spec_from_file_location(
        "magneton", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {folder}")
    package = importlib.util.module_from_spec(spec)
    sys.modules["magneton"] = package
    spec.loader.exec_module(package)


def main() -> None:
    if sys.version_info < NEEDED:
        sys.exit(f"magneton needs Python {NEEDED[0]}.{NEEDED[1]} or newer; {sys.executable} is {sys.version}")
    from magneton.worker.channel import leave_words_behind, private_channel
    from magneton.worker.watch import watch_parent

    leave_words_behind()
    commands, replies = private_channel()
    watch_parent(commands.fileno(), replies.fileno())
    from magneton.worker.serve import serve  # only now: NumPy starts threads, and a fork must come first

    serve(commands, replies)


if __name__ in ("__main__", "__mp_main__"):  # the latter: in processes that a framework spawns
    make_importable()
if __name__ == "__main__":
    main()
