"""How PyTorch is set while a system runs: what we fix, and what we find and write down."""

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from magneton.errors import MagnetonError
from magneton.system import installed_version
from magneton.workload import GradMode

ENVIRONMENT_PREFIXES = ("OMP_", "MKL_", "KMP_", "GOMP_", "TORCH_", "PYTORCH_", "CUBLAS_", "NVIDIA_TF32")


def grad_mode() -> GradMode:
    """The grad mode that this thread is in."""
    if torch.is_inference_mode_enabled():
        return "inference"
    return "grad" if torch.is_grad_enabled() else "no_grad"


def without_gradients(mode: GradMode) -> AbstractContextManager[object]:
    """Inside, no gradient is tracked, in the way of ``mode``."""
    return torch.inference_mode() if mode == "inference" else torch.no_grad()


def use_threads(threads: int) -> None:
    torch.set_num_threads(threads)


def use_device(device: str) -> None:
    """Refuse a board that this interpreter's torch does not see, before anything is loaded onto it."""
    boards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "cpu" or int(device.partition(":")[2] or 0) < boards:
        return
    seen = f"sees {boards} boards" if boards else "sees none"
    raise MagnetonError(
        f"no device {device}: torch {torch.__version__} {seen}",
        hint="use --device cpu, or --python with an interpreter whose torch was built for the board",
    )


def found_versions(packages: Iterable[str]) -> Mapping[str, str]:
    """Versions of torch and of those ``packages`` that are installed; the worker adds Python and NumPy."""
    versions = {"torch": torch.__version__}
    found = {package: installed_version(package) for package in packages}
    versions |= {package: version for package, version in found.items() if version is not None}
    if torch.version.cuda is not None:
        versions["cuda"] = torch.version.cuda
    return versions


def found_flags() -> Mapping[str, str]:
    """The switches of this process that decide which kernels run, by the name one sets them under."""
    backends = torch.backends
    flags: dict[str, object] = {
        "torch.backends.cuda.matmul.allow_tf32": _allow_tf32(backends.cuda.matmul),
        "torch.backends.cudnn.allow_tf32": _allow_tf32(backends.cudnn),
        "torch.backends.cudnn.benchmark": backends.cudnn.benchmark,
        "torch.backends.cuda.flash_sdp": backends.cuda.flash_sdp_enabled(),
        "torch.backends.cuda.mem_efficient_sdp": backends.cuda.mem_efficient_sdp_enabled(),
        "torch.backends.cuda.math_sdp": backends.cuda.math_sdp_enabled(),
        "torch.backends.cuda.cudnn_sdp": backends.cuda.cudnn_sdp_enabled(),
        "torch.backends.mkldnn.enabled": backends.mkldnn.is_available() and backends.mkldnn.enabled,
        "torch.float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch.default_dtype": torch.get_default_dtype(),
        "torch.num_threads": torch.get_num_threads(),
        "torch.num_interop_threads": torch.get_num_interop_threads(),
    }
    flags |= {f"env.{key}": os.environ[key] for key in os.environ if key.startswith(ENVIRONMENT_PREFIXES)}
    return {key: str(value) for key, value in flags.items()}


def _allow_tf32(backend: Any) -> object:
    try:
        return backend.allow_tf32
    except RuntimeError:  # torch refuses the older name once somebody has used the newer one
        return f"fp32_precision={backend.fp32_precision}"
