"""How every system that runs a model begins to load."""

import os
from collections.abc import Mapping
from pathlib import Path

from magneton.errors import MagnetonError
from magneton.models.tokens import check_continuation
from magneton.system import complete_options, describe
from magneton.systems.running import Setup
from magneton.systems.torch_setting import use_device, use_threads
from magneton.workload import Continuation


def begin(name: str, setup: Setup) -> tuple[Path, Mapping[str, str]]:
    """The model's folder and all options, with PyTorch and the environment set as the system wants them.

    To be called before the system's own packages are imported: they read their environment then.
    """
    if setup.model_folder is None:
        raise MagnetonError(f"the {name} system needs a model", hint="add --model")
    options = complete_options(name, setup.options)
    os.environ.update(describe(name).environment)
    use_threads(setup.threads)
    use_device(setup.device)
    return setup.model_folder, options


def given_continuation(setup: Setup, vocab_size: int) -> Continuation | None:
    """What decode is to be fed, refused where it does not fit; None: the system chooses."""
    if setup.continuation is not None:
        check_continuation(setup.continuation, setup.workload, vocab_size)
    return setup.continuation
