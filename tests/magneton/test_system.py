from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from magneton.configs import read_config
from magneton.errors import MagnetonError
from magneton.system import (
    RecordedProfile,
    Step,
    SystemSpec,
    Variant,
    complete_options,
    installed_version,
    parse_system,
    system_descriptions,
    system_label,
)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model.py").write_text("")
    return tmp_path


def test_a_bare_name():
    assert parse_system("transformers") == SystemSpec(name="transformers", options={})


def test_a_name_with_options_keeps_what_was_given():
    spec = parse_system("transformers:attn_implementation=eager,logits_to_keep=0")
    assert spec == SystemSpec(
        name="transformers", options={"attn_implementation": "eager", "logits_to_keep": "0"}
    )


def test_a_recorded_profile():
    assert parse_system("some/where/vllm.mgn") == RecordedProfile(path=Path("some/where/vllm.mgn"))


@pytest.mark.parametrize("text", ["my_model.py:build", "./my_model.py:build"])
def test_a_callable_can_be_found_from_any_folder(in_folder: Path, text: str):
    path = str((in_folder / "my_model.py").resolve())
    assert parse_system(text) == SystemSpec(name="callable", options={"path": path, "function": "build"})


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("transfromers", "unknown system 'transfromers'", "did you mean 'transformers'?"),
        ("", "unknown system ''", "valid: "),
        ("transformers:attn=eager", "unknown option of transformers 'attn'", "'attn_implementation'"),
        ("transformers:attn_implementation=eagre", "'eagre'", "did you mean 'eager'?"),
        ("transformers:eager", "'eager' in 'transformers:eager' is not", "attn_implementation=eager"),
        ("transformers:logits", "is not key=value", "logits_to_keep=..."),
        ("transformers:", "is not key=value", "options: attn_implementation"),
        ("transformers:logits_to_keep=-1", "must be a whole number, not '-1'", "positions"),
        ("transformers:logits_to_keep=1,logits_to_keep=0", "is given twice", "keep one"),
        ("vllm:block_size=0", "must be a whole number of at least 1, not '0'", "block of the cache"),
        ("torch:logits=some", "unknown value for torch:logits: 'some'", "last, all"),
        ("callable", "named by its file", "PATH.py:FUNCTION"),
        ("my_model.py", "names no function", "my_model.py:FUNCTION"),
        ("my_model.py:", "'' is not the name", "my_model.py:FUNCTION"),
        ("my_model.py:a b", "'a b' is not the name", "my_model.py:FUNCTION"),
        ("other.py:build", "no file other.py", "current folder"),
    ],
)
def test_bad_specs_say_what_is_meant(in_folder: Path, text: str, message: str, hint: str):
    with pytest.raises(MagnetonError) as caught:
        parse_system(text)
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_defaults_complete_what_was_given():
    assert complete_options("transformers", {"logits_to_keep": "0"}) == {
        "attn_implementation": "sdpa",
        "logits_to_keep": "0",
    }


def test_an_option_without_default_must_be_given():
    with pytest.raises(MagnetonError, match="callable needs a value for 'function'"):
        complete_options("callable", {"path": "x.py"})


def test_every_description_is_whole():
    for name, description in system_descriptions().items():
        assert description.description, name
        assert set(description.variants) == {"cpu", "cuda"}, name
        for key, option in description.options.items():
            assert option.help, (name, key)
            assert (option.type == "choice") == bool(option.choices), (name, key)
            if option.type == "choice":
                assert option.default in option.choices, (name, key)


def test_every_description_can_be_installed():
    for name, description in system_descriptions().items():
        for variant in description.variants.values():
            packages = [package for step in variant.installation() for package in step.install]
            wanted = {Requirement(package).name for package in packages}
            required = {Requirement(each) for each in variant.requirements}
            assert {each.name for each in required} <= wanted, name
            assert {"numpy", "nvidia-ml-py"} <= wanted, name  # what a worker itself imports
            assert variant.python is None or SpecifierSet(variant.python).contains("3.11.7"), name
            assert variant.size_bytes or name == "callable", name


def test_what_is_installed_is_what_the_adapter_is_written_for():
    """Also what lets a system run in the interpreter at hand: there ``supports`` is not asked again."""
    for name, description in system_descriptions().items():
        supported = SpecifierSet(description.supports or "")
        for kind, variant in description.variants.items():
            required = {Requirement(each).name: Requirement(each) for each in variant.requirements}
            (own,) = required[description.package_on(kind)].specifier
            within = own.operator == "==" and supported.contains(own.version)
            assert within or own in tuple(supported), name


@pytest.mark.parametrize(("install", "remove"), [((), ()), (("x",), ("y",))])
def test_a_step_does_one_thing(install: tuple[str, ...], remove: tuple[str, ...]):
    with pytest.raises(ValueError, match="either installs something or removes something"):
        Step(install=install, remove=remove)


def test_a_removal_has_no_dependencies_to_spare():
    with pytest.raises(ValueError, match="with_dependencies"):
        Step(remove=("x",), with_dependencies=False)


def test_without_steps_what_is_required_is_installed():
    assert Variant(requirements=("x",)).installation() == (Step(install=("x",)),)


STEPS = """
[[steps]]
install = ["x==1"]
with_dependencies = false
[[steps]]
remove = ["y"]
"""


def test_steps_are_read_and_checked(tmp_path: Path):
    path = tmp_path / "variant.toml"
    path.write_text('requirements = ["x"]\npython = ">=3.11"' + STEPS)
    read = read_config(path, Variant)

    assert read.steps == (Step(install=("x==1",), with_dependencies=False), Step(remove=("y",)))

    path.write_text('requirements = ["x"]\n[[steps]]\nuninstall = ["y"]\n')
    with pytest.raises(MagnetonError, match=r"steps\[0\]: unknown key 'uninstall'"):
        read_config(path, Variant)


def test_versions_are_read_without_importing():
    assert installed_version("numpy")
    assert installed_version("a-package-nobody-has") is None


@pytest.mark.parametrize("text", ["torch", "transformers:attn_implementation=eager,logits_to_keep=0"])
def test_a_label_is_what_was_typed(text: str):
    spec = parse_system(text)
    assert isinstance(spec, SystemSpec)
    assert system_label(spec.name, spec.options) == text


def test_a_callable_is_labelled_by_its_place_and_anything_else_by_its_options():
    place = {"path": "mine.py", "function": "build"}
    assert system_label("callable", place) == "mine.py:build"
    assert system_label("callable", {"path": "mine.py"}) == "callable:path=mine.py"
