from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_recording import toy_prepare, toy_request

from magneton.interventions import (
    ForceBranch,
    Intervention,
    Scalar,
    SetArgument,
    SetAttribute,
    SetEnvironment,
    SetFlag,
    SetOption,
)
from magneton.record.codec import CodecError, decode, encode
from magneton.record.request import intervened
from magneton.worker.protocol import Prepare

names = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | names
interventions = st.one_of(
    st.builds(SetOption, name=names, value=names),
    st.builds(SetEnvironment, name=names, value=names),
    st.builds(SetFlag, name=names, value=scalars),
    st.builds(SetAttribute, modules=names, attribute=names, value=scalars),
    st.builds(ForceBranch, file=names, function=names, line=st.integers(1, 10**6), taken=st.booleans()),
    st.builds(SetArgument, file=names, function=names, name=names, value=scalars),
)


@given(st.lists(interventions, max_size=4))
def test_they_survive_the_way_to_the_worker(chosen: list[Intervention]):
    sent = toy_prepare(Path("/somewhere"))
    sent = decode(Prepare, encode(sent).replace('"interventions":[]', f'"interventions":{encode(chosen)}'))

    assert repr(sent.interventions) == repr(tuple(chosen))  # repr: 1, 1.0 and True are equal to each other


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "{}",
        '{"kind":"explode"}',
        '{"kind":["flag"],"name":"a","value":1}',
        '{"kind":"flag","name":"a"}',
        '{"kind":"flag","name":"a","value":[1]}',
        '{"kind":"branch","file":"a","function":"f","line":1,"taken":1}',
    ],
)
def test_nothing_else_gets_there(text: str):
    whole = encode(toy_prepare(Path("/somewhere"))).replace('"interventions":[]', f'"interventions":[{text}]')

    with pytest.raises(CodecError):
        decode(Prepare, whole)


def test_options_and_variables_are_changed_before_the_worker_starts():
    request = toy_request(how="crash", step_s="0.1")
    changes = (SetOption(name="how", value="hang"), SetEnvironment(name="TOY", value="1"))
    changed = intervened(request, changes)

    assert changed.options == {"how": "hang", "step_s": "0.1"}
    assert changed.environment == {**request.environment, "TOY": "1"}
    assert changed.interventions == changes
    assert request.options["how"] == "crash" and request.interventions == ()


@given(st.lists(interventions, max_size=4), st.lists(interventions, max_size=4))
def test_one_after_the_other_is_all_at_once(first: list[Intervention], then: list[Intervention]):
    request = toy_request()

    assert intervened(intervened(request, first), then) == intervened(request, [*first, *then])


@given(interventions)
def test_each_says_what_it_changes(one: Intervention):
    value: Scalar = one.text

    assert isinstance(value, str) and value
