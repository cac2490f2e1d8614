"""Which model: a preset's name, a local folder or a hub id becomes one validated folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from safetensors import SafetensorError, safe_open

from magneton.cache import built_once, cache_folder
from magneton.errors import MagnetonError
from magneton.models.hashes import config_hash, weights_hash
from magneton.models.hub import download, is_hub_id
from magneton.models.preset import preset_names, read_preset, recipe_at
from magneton.models.synthesis import recipe_hash, synthesise
from magneton.names import unknown
from magneton.workload import Workload

LARGEST_CONFIG_BYTES = 10_000_000
POSITION_KEYS = ("max_position_embeddings", "n_positions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A folder in Hugging Face format that was found complete, and what tells it from another."""

    name: str  # "llama-small", the folder's name, or the hub id
    folder: Path
    architecture: str  # the configuration's model_type: "llama", "gpt2"
    vocab_size: int
    positions: int | None  # the longest sequence; None where the configuration does not say
    config_hash: str
    weights_hash: str


def resolve_model(spec: str, scale: str | None = None) -> Model:
    """The model that ``spec`` names, synthesised or downloaded if it has to be."""
    if spec in preset_names():
        return _preset_model(spec, scale)
    folder = Path(spec).expanduser()
    is_place = folder.exists() or "/" in spec or spec.startswith(("~", "."))
    if not is_place:
        raise unknown("model", spec, preset_names())
    if scale is not None:
        raise MagnetonError(
            f"model {spec!r} has no scales", hint=f"a scale goes with a preset: {', '.join(preset_names())}"
        )
    if folder.is_dir():
        return read_model(folder.resolve(), name=folder.resolve().name)
    if is_hub_id(spec):
        return read_model(download(spec), name=spec)
    raise MagnetonError(
        f"model {spec!r} is not a folder", hint="give a folder with config.json and *.safetensors"
    )


def read_model(folder: Path, *, name: str) -> Model:
    """The model in ``folder``; what is missing, cut short or unreadable is a MagnetonError."""
    config = read_model_config(folder)
    text_config = config.get("text_config", config)  # models of several modalities nest it
    fields = cast(Mapping[str, object], text_config if isinstance(text_config, dict) else config)
    vocab_size, architecture = fields.get("vocab_size"), config.get("model_type")
    if not isinstance(vocab_size, int) or vocab_size < 1 or not isinstance(architecture, str):
        raise MagnetonError(
            f"{folder / 'config.json'} gives no vocab_size or no model_type",
            hint="is it the configuration of a language model in Hugging Face format?",
        )
    positions = next((value for key in POSITION_KEYS if isinstance(value := fields.get(key), int)), None)
    return Model(
        name=name,
        folder=folder,
        architecture=architecture,
        vocab_size=vocab_size,
        positions=positions,
        config_hash=config_hash(config),
        weights_hash=weights_hash(weight_files(folder)),
    )


def read_model_config(folder: Path) -> Mapping[str, object]:
    """``config.json`` of a model's folder."""
    path = folder / "config.json"
    try:
        if path.stat().st_size > LARGEST_CONFIG_BYTES:
            raise MagnetonError(f"{path} is too large for a configuration", hint="check the folder")
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise MagnetonError(
            f"cannot read {path}: {error.strerror}", hint="give a model's folder in Hugging Face format"
        ) from error
    except (ValueError, RecursionError) as error:
        raise MagnetonError(f"{path} is not valid JSON: {error}", hint="correct the file") from error
    if not isinstance(config, dict):
        raise MagnetonError(f"{path} does not hold a JSON object", hint="correct the file")
    return cast(Mapping[str, object], config)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of a model's folder, each found complete."""
    files = tuple(sorted(folder.glob("*.safetensors")))
    if not files:
        raise MagnetonError(
            f"no *.safetensors in {folder}",
            hint="weights in other formats are not read; save the model with save_pretrained()",
        )
    for path in files:
        try:
            with path.open("rb"), safe_open(path, framework="numpy"):
                pass
        except OSError as error:
            raise MagnetonError(
                f"cannot read {path}: {error.strerror or error}", hint="check that you may read it"
            ) from error
        except SafetensorError as error:
            raise MagnetonError(f"{path} is damaged: {error}", hint="copy or download it again") from error
    return files


def check_fits(model: Model, workload: Workload, spare: int = 0) -> None:
    """Refuse a workload whose sequences, and what its system wants to ``spare``, are longer than the model's
    positions."""
    needed = workload.prompt_tokens + workload.decode_steps + spare
    if model.positions is not None and needed > model.positions:
        more = f", and {spare} that the system keeps free," if spare else ""
        raise MagnetonError(
            f"{workload.prompt_tokens} prompt tokens and {workload.decode_steps} decode steps{more} need"
            f" {needed} positions; {model.name} has {model.positions}",
            hint="shorten the prompt or decode fewer steps",
        )


def _preset_model(name: str, scale: str | None) -> Model:
    preset = read_preset(name)
    recipe = recipe_at(preset, scale)
    full_name = f"{name}-{scale or preset.default_scale}"
    place = cache_folder() / "models" / f"{full_name}-{recipe_hash(recipe)}"
    folder = built_once(place, lambda aside: synthesise(recipe, aside))
    return read_model(folder, name=full_name)
