"""The engine's compiled module, without the package around it.

``import egglog`` runs a high-level interface that we do not use and that takes ten times as long to import as
the compiled module beside it. So that module is loaded from its file, under its own name: where ``egglog``
itself was imported before, or is later, both are one and the same module.
"""

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egglog.bindings import EGraph

NAME = "egglog.bindings"


def new_engine() -> "EGraph":
    """An empty engine. It belongs to this thread."""
    return _bindings().EGraph()


def _bindings() -> ModuleType:
    return sys.modules.get(NAME) or _load(_file())


def _file() -> Path:
    package = find_spec("egglog")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        for suffix in EXTENSION_SUFFIXES:
            file = Path(folder) / f"bindings{suffix}"
            if file.is_file():
                return file
    raise ModuleNotFoundError("egglog is not installed, or has no compiled module", name=NAME)


def _load(file: Path) -> ModuleType:
    loader = ExtensionFileLoader(NAME, str(file))
    spec = spec_from_file_location(NAME, file, loader=loader)
    if spec is None:
        raise ModuleNotFoundError(f"{file} cannot be loaded", name=NAME, path=str(file))
    module = module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[NAME] = module
    return module
