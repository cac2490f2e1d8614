"""The two systems that run a model: they agree with each other, and each with itself."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tiny_models import tiny_model
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.errors import MagnetonError
from magneton.models.model import read_model_config
from magneton.models.tokens import prompt_ids
from magneton.plugins import SYSTEMS, load_plugin
from magneton.systems.outputs import Array, finish_outputs
from magneton.systems.running import Facts, RunningSystem, Setup
from magneton.workload import DECODE, PREFILL, Continuation, DType, GradMode, Phase, Workload

needs_transformers = pytest.mark.skipif(
    find_spec("transformers") is None, reason="transformers is not installed"
)
BOTH = [pytest.param("transformers", marks=needs_transformers), "torch"]
WORKLOAD = Workload(batch=2, prompt_tokens=12, decode_steps=3)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(request.param, tmp_path_factory.mktemp("model"))


def load(
    name: str,
    folder: Path | None,
    *,
    workload: Workload = WORKLOAD,
    options: Mapping[str, str] | None = None,
    device: str = "cpu",
    continuation: Continuation | None = None,
    grad_mode: GradMode = "no_grad",
) -> tuple[RunningSystem, Facts]:
    system: RunningSystem = load_plugin(SYSTEMS, name)()
    setup = Setup(
        options=options or {},
        model_folder=folder,
        workload=workload,
        device=device,
        threads=1,
        continuation=continuation,
        grad_mode=grad_mode,
    )
    return system, system.load(setup)


def run(system: RunningSystem, phase: Phase) -> Mapping[str, Array]:
    system.rewind(phase)
    return finish_outputs(system.step(phase))


@needs_transformers
@pytest.mark.parametrize("options", [{}, {"attn_implementation": "eager"}, {"logits_to_keep": "0"}])
def test_transformers_and_torch_agree(folder: Path, options: dict[str, str]):
    theirs, _ = load("transformers", folder, options=options)
    ours, _ = load("torch", folder)
    for phase in (PREFILL, DECODE):
        baseline, candidate = run(theirs, phase), run(ours, phase)
        np.testing.assert_allclose(candidate["logits"], baseline["logits"], atol=1e-4, rtol=0)
        np.testing.assert_array_equal(candidate["tokens"], baseline["tokens"])


@pytest.mark.parametrize("name", BOTH)
def test_outputs_have_the_declared_shapes(name: str, folder: Path):
    system, _ = load(name, folder)
    prefill, decode = run(system, PREFILL), run(system, DECODE)
    assert {key: array.shape for key, array in prefill.items()} == {"logits": (2, 1024), "tokens": (2,)}
    shapes = {key: array.shape for key, array in decode.items()}
    assert shapes == {"logits": (3, 2, 1024), "tokens": (3, 2), "fed": (3, 2)}
    assert prefill["logits"].dtype == np.float32


@pytest.mark.parametrize("name", BOTH)
def test_a_repeated_step_is_the_same_to_the_bit(name: str, folder: Path):
    """Whatever came between: no step leaves a trace in the next one of its phase."""
    system, _ = load(name, folder)
    first = {phase: run(system, phase) for phase in (DECODE, PREFILL)}
    for phase in (PREFILL, DECODE, DECODE, PREFILL, PREFILL, DECODE):
        for key, array in run(system, phase).items():
            np.testing.assert_array_equal(array, first[phase][key])


class Seen(TorchDispatchMode):
    """Which operators run, on which shapes and strides."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[object, ...]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        self.calls.append((func, *((tensor.shape, tensor.stride()) for tensor in tensors)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("phase", [PREFILL, DECODE])
def test_a_repeated_step_is_the_same_work(name: str, phase: Phase, folder: Path):
    """The same operators on the same memory layouts, so that it costs the same."""
    system, _ = load(name, folder)
    seen = [Seen(), Seen(), Seen()]
    for mode in seen:
        system.rewind(phase)
        with mode:
            system.step(phase)
    assert len(seen[0].calls) > 20
    assert seen[0].calls == seen[1].calls == seen[2].calls


@pytest.mark.parametrize("name", BOTH)
def test_decoding_continues_the_prompt(name: str, tmp_path: Path):
    """Its last logits are those of a prefill over prompt and decoded tokens together."""
    folder = tiny_model("llama", tmp_path)
    longer = Workload(prompt_tokens=15, decode_steps=0, phases=(PREFILL,))
    rest = tuple((token,) for token in prompt_ids(longer, 1024)[0, 12:].tolist())
    short, _ = load(name, folder, workload=Workload(prompt_tokens=12, decode_steps=3), continuation=rest)
    long, _ = load(name, folder, workload=longer)
    decoded, whole = run(short, DECODE)["logits"][-1], run(long, PREFILL)["logits"]
    np.testing.assert_allclose(decoded, whole, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", BOTH)
def test_decoding_is_fed_the_likeliest_tokens(name: str, folder: Path):
    system, facts = load(name, folder)
    prefill, decode = run(system, PREFILL), run(system, DECODE)
    chosen = np.concatenate([prefill["tokens"][None], decode["tokens"][:-1]])
    np.testing.assert_array_equal(decode["fed"], chosen)
    assert facts.continuation == tuple(map(tuple, chosen.tolist()))


@pytest.mark.parametrize("name", BOTH)
def test_decoding_is_fed_what_is_given(name: str, folder: Path):
    given = ((5, 6), (7, 8), (9, 10))
    system, facts = load(name, folder, continuation=given)
    np.testing.assert_array_equal(run(system, DECODE)["fed"], given)
    assert facts.continuation == given


@pytest.mark.parametrize("name", BOTH)
def test_tokens_that_the_model_does_not_know_are_refused(name: str, folder: Path):
    with pytest.raises(MagnetonError, match="do not fit"):
        load(name, folder, continuation=((5, 6), (7, 8), (9, 1024)))


@pytest.mark.parametrize("name", BOTH)
def test_prompts_of_a_batch_do_not_mix(name: str, folder: Path):
    logits = run(load(name, folder)[0], PREFILL)["logits"]
    assert np.abs(logits[0] - logits[1]).max() > 0.1


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precisions_run_and_come_back_as_float32(name: str, dtype: DType, folder: Path):
    whole = run(load(name, folder)[0], PREFILL)["logits"]
    system, facts = load(
        name, folder, workload=Workload(batch=2, prompt_tokens=12, decode_steps=3, dtype=dtype)
    )
    half = run(system, PREFILL)["logits"]
    assert half.dtype == np.float32
    assert 0 < np.abs(half - whole).max() < 0.3
    assert facts.flags["config.dtype"] == dtype


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("mode", ["no_grad", "inference"])
def test_no_gradients_are_kept(name: str, mode: GradMode, folder: Path):
    system, facts = load(name, folder, grad_mode=mode)
    assert facts.grad_mode == mode
    for phase in (PREFILL, DECODE, DECODE, PREFILL):
        system.rewind(phase)
        logits = system.step(phase)["logits"]
        last: Tensor = logits[-1] if phase == DECODE else logits
        assert not last.requires_grad
        assert last.is_inference() == (mode == "inference")


@pytest.mark.parametrize("name", BOTH)
def test_facts_tell_versions_threads_and_switches(name: str, folder: Path):
    _, facts = load(name, folder)
    assert facts.versions["torch"] == torch.__version__
    assert facts.flags["torch.num_threads"] == "1"
    assert facts.flags["torch.backends.cuda.matmul.allow_tf32"] in ("True", "False")
    assert facts.flags["torch.float32_matmul_precision"] == torch.get_float32_matmul_precision()
    assert all(isinstance(value, str) for value in facts.flags.values())


@needs_transformers
def test_the_attention_that_was_asked_for_is_used(folder: Path):
    for chosen in ("eager", "sdpa"):
        _, facts = load("transformers", folder, options={"attn_implementation": chosen})
        assert facts.flags["config.attn_implementation"] == chosen


@pytest.mark.parametrize("name", BOTH)
def test_roots_name_the_model_and_its_inputs(name: str, folder: Path):
    system, _ = load(name, folder)
    roots = system.roots()
    assert isinstance(roots[""], nn.Module)
    assert {"prompt", "decode.0", "decode.1", "decode.2"} <= set(roots["input"])
    assert roots["input"]["prompt"].shape == (2, 12)


@pytest.mark.parametrize(
    ("name", "options", "positions"),
    [
        pytest.param("transformers", {"logits_to_keep": "1"}, 1, marks=needs_transformers),
        pytest.param("transformers", {"logits_to_keep": "0"}, 12, marks=needs_transformers),
        ("torch", {"logits": "last"}, 1),
        ("torch", {"logits": "all"}, 12),
    ],
)
def test_logits_on_as_many_positions_as_asked(
    folder: Path, name: str, options: dict[str, str], positions: int
):
    system, _ = load(name, folder, options=options)
    system.rewind(PREFILL)
    assert system.step(PREFILL)["logits"].shape == (2, positions, 1024)


@pytest.mark.parametrize("name", BOTH)
def test_a_system_without_a_model_says_so(name: str):
    with pytest.raises(MagnetonError, match="needs a model"):
        load(name, None)


def test_an_architecture_that_torch_does_not_know(tmp_path: Path):
    folder = tiny_model("llama", tmp_path)
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"llama"', '"lama"'))
    assert read_model_config(folder)["model_type"] == "lama"
    with pytest.raises(MagnetonError) as caught:
        load("torch", folder)
    assert "unknown architecture for the torch system: 'lama'" in str(caught.value)
    assert "'llama'" in caught.value.hint


@needs_transformers
def test_an_architecture_that_transformers_does_not_know(tmp_path: Path):
    folder = tiny_model("llama", tmp_path)
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"llama"', '"lama"'))
    with pytest.raises(MagnetonError, match="transformers cannot load"):
        load("transformers", folder)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("damage", ["one is missing", "one has another shape"])
def test_weights_that_do_not_fit_are_refused_by_name(tmp_path: Path, name: str, damage: str):
    """A library would fill them at random, and each side would run a model of its own."""
    folder = tiny_model("llama", tmp_path)
    path = folder / "model.safetensors"
    weights = load_file(path)
    weight = weights.pop("model.layers.1.mlp.up_proj.weight")
    if damage == "one has another shape":
        weights["model.layers.1.mlp.up_proj.weight"] = weight[:-1].copy()
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(MagnetonError, match=r"the weights in .*model\.layers\.1\.mlp\.up_proj\.weight"):
        load(name, folder)


@pytest.mark.parametrize("name", BOTH)
def test_a_board_that_torch_does_not_see_is_refused(name: str, folder: Path):
    with pytest.raises(MagnetonError, match="no device cuda:99"):
        load(name, folder, device="cuda:99")
