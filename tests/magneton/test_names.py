import pytest

from magneton.names import nearest, unknown

VALID = ("transformers", "torch", "callable")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("transfromers", "transformers"),
        ("Torch", "torch"),
        ("call", "callable"),
        ("trans-formers", "transformers"),
        ("zzz", None),
        ("t", None),  # begins two of them
        ("", None),
    ],
)
def test_the_nearest_name(typed: str, meant: str | None):
    assert nearest(typed, VALID) == meant


def test_underscores_and_hyphens_are_one():
    assert nearest("attn-implementation", ("attn_implementation",)) == "attn_implementation"


def test_an_error_names_the_nearest_and_all():
    error = unknown("system", "tarch", VALID)
    assert str(error) == "unknown system 'tarch'"
    assert error.hint == "did you mean 'torch'? (valid: transformers, torch, callable)"


def test_an_error_without_choices_says_so():
    assert unknown("option", "x", ()).hint == "there are none"
