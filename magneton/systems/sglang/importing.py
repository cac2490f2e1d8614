"""Import SGLang: on a CPU with a platform that it finds, and a torchvision that can be imported."""

import atexit
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import torch

PLATFORM = "magneton_cpu"
PLUGIN = f"[sglang.srt.platforms]\n{PLATFORM} = magneton.systems.sglang.platform:activate\n"
METADATA = "Metadata-Version: 2.1\nName: magneton-sglang-platform\nVersion: 1\n"
# What torchvision registers meta kernels for, whether or not its own kernels could be loaded.
SCHEMAS = ("nms", "qnms")


def prepare_import(device: str) -> None:
    """Call before anything of SGLang is imported."""
    if device == "cpu":
        offer_platform()
    make_torchvision_importable()


def offer_platform() -> None:
    """Let SGLang find ``platform`` as it finds everybody's: as an entry point of a distribution.

    magneton is not installed in SGLang's environment, so the distribution is two small files on the path.
    """
    folder = Path(tempfile.mkdtemp(prefix="magneton-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    info = folder / "magneton_sglang_platform-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(PLUGIN)
    sys.path.append(str(folder))
    os.environ["SGLANG_PLATFORM"] = PLATFORM


def make_torchvision_importable() -> None:
    """SGLang imports torchvision for images. Beside a CPU build of torch, the torchvision that is usually
    installed cannot load its kernels, and fails over two operators that it then does not know."""
    try:
        import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        global _declared  # a library takes its operators with it when it goes
        _declared = torch.library.Library("torchvision", "DEF")
        for name in SCHEMAS:
            _declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_module("torchvision")


_declared: torch.library.Library | None = None
