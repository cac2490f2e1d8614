"""The machine without its sensors: processor, load, cache, packages, models, and what is left to trust."""

from pathlib import Path

from looked_at import bare_machine, place, sensor

from magneton.doctor import examine


def test_a_machine_without_sensors_says_so_and_what_is_left(tmp_path: Path) -> None:
    diagnosis = examine(bare_machine(tmp_path))

    assert sensor(diagnosis, "nvml").state == "absent"
    assert sensor(diagnosis, "rapl").state == "absent"
    assert diagnosis.meter == "modelled"
    assert diagnosis.meters == {"cpu": "modelled"}
    assert diagnosis.trust[0] == "measured: nothing, there is no sensor that may be read"


def test_nothing_is_probed_and_nothing_said_where_there_is_no_sensor(tmp_path: Path) -> None:
    said: list[str] = []

    examine(bare_machine(tmp_path, say=said.append))

    assert said == []


def test_the_processor_is_named(tmp_path: Path) -> None:
    assert place(examine(bare_machine(tmp_path)), "processor").detail.startswith("A Processor @ 2 GHz, ")


def test_a_busy_machine_gets_advice_and_a_sentence(tmp_path: Path) -> None:
    idle, busy = examine(bare_machine(tmp_path)), examine(bare_machine(tmp_path, load_1min=lambda: 99.0))
    mute = examine(bare_machine(tmp_path, load_1min=lambda: None))

    assert place(idle, "load").advice == ""
    assert "alternately" in place(busy, "load").advice
    assert place(mute, "load").state == "absent"
    assert "now: this machine is busy" in busy.trust[-1]
    assert not any(sentence.startswith("now:") for sentence in (*idle.trust, *mute.trust))


def test_a_cache_that_is_not_made_yet_is_fine_and_one_under_a_file_is_not(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")

    diagnosis = examine(bare_machine(tmp_path))
    blocked = examine(bare_machine(tmp_path, cache=lambda: blocker / "magneton"))

    assert place(diagnosis, "cache").state == "ok"
    assert not (tmp_path / "cache").exists()
    assert place(blocked, "cache").state == "unusable"


def test_packages_are_named_without_importing_them(tmp_path: Path) -> None:
    packages = examine(bare_machine(tmp_path, {"torch": "2.13.0"})).packages

    assert [(package.name, package.state) for package in packages] == [
        ("torch", "ok"),
        ("transformers", "absent"),
        ("zeus", "absent"),
    ]


def test_every_model_of_a_device_is_listed_with_what_it_is_of(tmp_path: Path) -> None:
    models = {model.name: model for model in examine(bare_machine(tmp_path)).models}

    assert "modelled:cpu" not in models
    assert models["modelled:h200"].state == "ok"
    assert "H200" in models["modelled:h200"].detail
    assert "700 W" in models["modelled:h200"].detail
