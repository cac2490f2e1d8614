"""Models from the Hugging Face hub, through its own client: its cache, its settings, its credentials."""

import re
from importlib import import_module
from pathlib import Path

from magneton.errors import MagnetonError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
WANTED = ("*.json", "*.safetensors", "*.model", "*.txt")


def is_hub_id(spec: str) -> bool:
    """Whether ``spec`` reads as ``organisation/name``."""
    return HUB_ID.fullmatch(spec) is not None


def download(hub_id: str) -> Path:
    """The folder of ``hub_id`` in the hub client's cache, downloaded if it is not there yet."""
    try:
        hub = import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise MagnetonError(
            f"model {hub_id!r} looks like a hub id, and huggingface_hub is not installed",
            hint="pip install huggingface_hub, or give a local folder",
        ) from error
    try:
        return Path(hub.snapshot_download(hub_id, allow_patterns=list(WANTED)))
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise MagnetonError(
            f"cannot get model {hub_id!r} from the hub: {reason}",
            hint="check the name and the network; a preset or a local folder needs neither",
        ) from error
