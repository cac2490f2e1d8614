"""From what a step returned to what is stored: declared outputs as small NumPy arrays.

This is the harness's work. It happens after the step, where no pass is watching.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from magneton.record.sketching import PROJECTION_PERIOD, projection_weights

LOGITS = "logits"  # the one output whose meaning is known: the last position counts, and tokens follow
TOKENS = "tokens"
PROJECTED = ".projection"  # ends the name of what stands for an output over the limit
LARGEST_BYTES = 16 * 1024 * 1024
PROJECTION_SEEDS = 8

Array = NDArray[Any]


def finish_outputs(outputs: Mapping[str, Any], *, largest_bytes: int = LARGEST_BYTES) -> dict[str, Array]:
    """Arrays by name, from tensors or tuples of tensors (one for each decode step).

    ``logits`` becomes those of the last position, [batch, vocab] or [steps, batch, vocab], and adds their
    ``tokens``. What is larger than ``largest_bytes`` becomes ``NAME.projection``.
    """
    finished: dict[str, Array] = {}
    for name, output in outputs.items():
        array = _logits(output) if name == LOGITS else _array(output)
        if name == LOGITS:
            finished[TOKENS] = np.argmax(array, axis=-1)
        if array.nbytes > largest_bytes:
            finished[name + PROJECTED] = project(array)
        else:
            finished[name] = array
    return finished


def project(array: Array) -> NDArray[np.float64]:
    """Sixteen seeded sums over the elements in logical order, each about as large as one element.

    Sensitive to order, unlike a sketch, and blind to nothing but chance. Elements that are not finite count
    as zero.
    """
    data = np.nan_to_num(_real(array).reshape(-1), nan=0.0, posinf=0.0, neginf=0.0)
    sums = np.zeros((PROJECTION_SEEDS, 2))
    for seed in range(PROJECTION_SEEDS):
        weights = projection_weights(seed)
        for start in range(0, data.size, PROJECTION_PERIOD):
            part = data[start : start + PROJECTION_PERIOD].astype(np.float64)
            sums[seed] += weights[:, : part.size] @ part
    return sums.reshape(-1) / math.sqrt(max(data.size, 1))


def _logits(output: Any) -> Array:
    if isinstance(output, Sequence):
        return np.stack([_array(_last_position(each)) for each in cast(Sequence[Any], output)])
    return _array(_last_position(output))


def _last_position(logits: Any) -> Any:
    """Of [batch, positions, vocab]; engines give [batch, vocab], those of the last positions."""
    return logits if logits.ndim == 2 else logits[..., -1, :]


def _array(output: Any) -> Array:
    """One array of a tensor, an array, a number, or a stack of equal ones; half precisions as float32."""
    if isinstance(output, Sequence):
        return np.stack([_array(each) for each in cast(Sequence[Any], output)])
    if hasattr(output, "detach"):
        tensor = output.detach().cpu().resolve_conj().resolve_neg()
        half = tensor.is_floating_point() and tensor.element_size() < 4
        return (tensor.float() if half else tensor).numpy().copy()  # the next step may write there
    array = np.array(output)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _real(array: Array) -> Array:
    return np.stack([np.real(array), np.imag(array)], axis=-1) if np.iscomplexobj(array) else array
