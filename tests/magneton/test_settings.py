import sys
from pathlib import Path

import pytest
from profiles import an_origin
from tiny_models import tiny_model
from toy_environment import pip_environment

from magneton.configs import config_path
from magneton.envs.consent import Conversation
from magneton.envs.interpreter import Named
from magneton.errors import MagnetonError
from magneton.meters.devices import read_model
from magneton.meters.modelled import DeviceMeter
from magneton.profile.origin import MeterInfo, Origin
from magneton.quantity import Provenance
from magneton.record.progress import NoProgress
from magneton.record.request import RecordRequest
from magneton.settings import Settings, device_for, kind_of, like, plan_of, requests_for
from magneton.sides import ready_requests
from magneton.system import SystemSpec, installed_version, parse_system
from magneton.workload import CALL, GradMode, Workload

CALLABLE = SystemSpec(name="callable", options={"path": "/home/me/mine.py", "function": "build"})


def test_what_was_not_given_comes_from_the_recorded_side() -> None:
    origin = an_origin(
        model="gpt2-tiny",
        workload=Workload(phases=("prefill",), batch=3, prompt_tokens=5, seed=7),
        meter=MeterInfo(name="counted:flops", unit="FLOP", provenance=Provenance.COUNTED),
        threads=2,
    )

    settings = like(Settings(batch=4), origin)

    assert (settings.model, settings.scale) == ("gpt2", "tiny")
    assert (settings.batch, settings.prompt_tokens, settings.seed) == (4, 5, 7)
    assert (settings.meter, settings.threads, settings.phases) == ("counted:flops", 2, ("prefill",))


def test_a_model_that_is_no_preset_keeps_its_name() -> None:
    assert like(Settings(), an_origin(model="owner/name-7b")).model == "owner/name-7b"


def test_a_callable_needs_no_model_and_has_one_phase() -> None:
    (request,) = requests_for([CALLABLE], Settings(seed=3, device="cpu"))

    assert (request.model, request.model_folder, request.config_hash) == ("mine.py:build", None, "")
    assert (request.workload.phases, request.workload.seed) == ((CALL,), 3)


def test_a_callable_against_a_model_is_refused_before_anything_runs() -> None:
    with pytest.raises(MagnetonError, match="callable"):
        requests_for([CALLABLE, SystemSpec(name="torch", options={})], Settings())


@pytest.mark.parametrize(("given", "used"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:3", "cuda:3")])
def test_a_device_is_named_in_full(given: str, used: str) -> None:
    (request,) = requests_for([CALLABLE], Settings(device=given))

    assert request.device == used


def test_the_other_side_follows_a_system_that_has_one_grad_mode_only() -> None:
    systems = [parse_system(name) for name in ("transformers", "vllm")]
    specs = [spec for spec in systems if isinstance(spec, SystemSpec)]

    assert {request.grad_mode for request in requests_for(specs, Settings(scale="tiny"))} == {"inference"}
    assert requests_for(specs[:1], Settings(scale="tiny"))[0].grad_mode == "no_grad"


@pytest.mark.parametrize("mode", ["inference", "no_grad"])
def test_a_recorded_side_says_the_grad_mode(mode: GradMode) -> None:
    settings = like(Settings(), an_origin(grad_mode=mode, model="llama-tiny"))
    system = parse_system("torch")

    assert isinstance(system, SystemSpec)
    assert requests_for([system], settings)[0].grad_mode == mode


@pytest.mark.parametrize("name", ["cudda", "cuda:", "cuda:x", "cpu:0", "mps"])
def test_a_device_that_nothing_runs_on_is_refused(name: str) -> None:
    with pytest.raises(MagnetonError, match="unknown device"):
        requests_for([CALLABLE], Settings(device=name))


def test_a_callable_is_called_as_the_user_types_it() -> None:
    (request,) = requests_for([CALLABLE], Settings(device="cpu"))

    assert request.label() == "/home/me/mine.py:build"


def test_a_plan_has_the_rounds_and_the_patience_asked_for() -> None:
    plan = plan_of(Settings(rounds=3, timeout_s=9.0))

    assert (plan.rounds, plan.replay_rounds, plan.in_place_rounds) == (3, 3, 5)
    assert plan.timeouts.trace_s == plan.timeouts.prepare_s == 9.0
    assert plan_of(Settings()) == plan_of(Settings(python=Named(for_all=Path("python"))))


@pytest.mark.parametrize(("device", "kind"), [("cpu", "cpu"), ("cuda:0", "cuda"), ("cuda:3", "cuda")])
def test_each_device_is_of_a_kind(device: str, kind: str) -> None:
    assert kind_of(device) == kind


@pytest.mark.skipif(
    "+cpu" not in (installed_version("torch") or ""), reason="PyTorch was built for CUDA here"
)
def test_what_cannot_use_a_board_here_keeps_the_other_side_off_it_too() -> None:
    assert device_for(["torch"], None, Named()) == "cpu"
    assert device_for(["vllm", "callable"], "auto", Named()) == "cpu"
    assert device_for(["torch"], "cuda", Named()) == "cuda:0"


def test_each_side_runs_in_the_interpreter_that_is_named_for_it() -> None:
    here = Path(sys.executable)
    other = next(path for name in ("python", "python3") if (path := here.with_name(name)) != here)
    requests = [RecordRequest(system="torch"), RecordRequest(system="callable")]
    settings = Settings(python=Named(for_all=other, by_system={"torch": here}))

    with ready_requests(requests, settings, Conversation(), NoProgress()) as ready:
        assert [request.python for request in ready] == [here, other]


def test_nothing_is_recorded_before_what_is_missing_was_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in pip_environment(tmp_path, "").items():
        monkeypatch.setenv(key, value)
    requests = [RecordRequest(system="vllm"), RecordRequest(system="sglang")]
    with (
        pytest.raises(MagnetonError, match=r"install vllm and sglang \(about \d"),
        ready_requests(requests, Settings(), Conversation(), NoProgress()),
    ):
        pytest.fail("it was not agreed to")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("system", ["vllm", "sglang", "torch"])
def test_an_architecture_that_a_system_cannot_run_is_refused_before_anything_is_loaded(
    system: str, tmp_path: Path
) -> None:
    folder = tiny_model("llama", tmp_path)
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"llama"', '"mamba"'))
    with pytest.raises(MagnetonError, match=f"unknown architecture for {system}:? 'mamba'"):
        requests_for([SystemSpec(name=system, options={})], Settings(model=str(folder)))


def test_an_engine_wants_positions_to_spare(tmp_path: Path) -> None:
    settings = Settings(model=str(tiny_model("gpt2", tmp_path)), prompt_tokens=1020, decode_steps=4)
    assert requests_for([SystemSpec(name="torch", options={})], settings)
    for system in ("vllm", "sglang"):
        with pytest.raises(MagnetonError, match="that the system keeps free"):
            requests_for([SystemSpec(name=system, options={})], settings)


def test_caches_are_as_asked_and_else_as_on_the_recorded_side() -> None:
    (request,) = requests_for([CALLABLE], Settings(device="cpu", cache="cold"))
    assert request.cache == "cold"
    assert like(Settings(), an_origin(replay_cache="cold")).cache == "cold"
    assert like(Settings(cache="warm"), an_origin(replay_cache="cold")).cache == "warm"
    assert like(Settings(), an_origin(replay_cache="as met")).cache is None


def recorded_with(file: Path, variant: str) -> Origin:
    """A profile's origin under the device that ``file`` describes."""
    return an_origin(meter=DeviceMeter(read_model(str(file)), name=variant).info())


def test_the_device_file_of_a_recording_has_to_be_named_again(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(config_path("devices", "h200").read_text().replace("700.0", "650.0"))

    for variant in ("mine", "h200"):  # the second is not what ships under that name
        with pytest.raises(MagnetonError, match="a device file of its own") as refused:
            like(Settings(), recorded_with(own, variant))
        assert refused.value.hint == f"name the same file: --meter modelled:PATH/{variant}.toml"
    assert like(Settings(meter=f"modelled:{own}"), recorded_with(own, "mine")).meter == f"modelled:{own}"
    assert like(Settings(), recorded_with(config_path("devices", "h200"), "h200")).meter == "modelled:h200"
