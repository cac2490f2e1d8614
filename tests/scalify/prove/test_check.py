"""Certificates replay without the engine; what was tampered with does not."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from certified import Certified, certified, certified_case, certified_layers, layers
from scalify_cases import case_names

from scalify.ir.graph import Graph
from scalify.ir.mesh import SINGLE
from scalify.prove.certificate_json import InvalidCertificate, from_json, to_json
from scalify.prove.check import check, replay
from scalify.relate.relate import relate

PROVED = tuple(name for name in case_names() if name.startswith("proved/"))
TAMPERED = tuple(name for name in PROVED if name.startswith(("proved/c", "proved/b1", "proved/b2")))[::3]


_case = cache(certified_case)


@pytest.mark.parametrize("name", PROVED)
def test_certificates_of_the_corpus_replay(name: str) -> None:
    proof = _case(name)
    if proof is None:
        pytest.skip("not proved")
    assert check(proof.certificate, proof.baseline, proof.candidate, proof.relations) == ()


@cache
def _layers() -> Certified:
    return certified_layers()


def test_equal_layers_share_a_proof_and_each_region_is_checked() -> None:
    proof = _layers()
    assert len(proof.certificate.used) > len(proof.certificate.regions)
    assert check(proof.certificate, proof.baseline, proof.candidate, proof.relations) == ()
    assert [replay(region) for region in proof.certificate.regions] == [()] * len(proof.certificate.regions)


def _read(proof: Certified, stored: Any) -> tuple[str, ...]:
    """Problems of a stored certificate, whether they are found when it is read or when it is checked."""
    try:
        found = from_json(json.dumps(stored), proof.baseline, proof.candidate, proof.relations)
    except InvalidCertificate as error:
        return (str(error),)
    return check(found, proof.baseline, proof.candidate, proof.relations)


@pytest.mark.parametrize("name", TAMPERED[:8])
def test_json_keeps_a_certificate(name: str) -> None:
    proof = _case(name)
    if proof is None:
        pytest.skip("not proved")
    text = to_json(proof.certificate)
    found = from_json(text, proof.baseline, proof.candidate, proof.relations)
    assert to_json(found) == text
    assert found.regions == proof.certificate.regions
    assert _read(proof, json.loads(text)) == ()


Tamper = Callable[[Random, dict[str, Any]], bool]
"""Changes one distinct proof of a stored certificate; False where there is nothing to change."""


def _drop_a_step(rng: Random, region: dict[str, Any]) -> bool:
    """A step whose conclusion is a premise of a later one."""
    steps = region["derivations"]
    used = {cell for step in steps for cell in step[4] if isinstance(cell, str)}
    found = [place for place, step in enumerate(steps) if step[3] in used and not _is_evident(region, step)]
    if found:
        del steps[rng.choice(found)]
    return bool(found)


def _is_evident(region: dict[str, Any], step: list[Any]) -> bool:
    """Whether the view says that a term is itself: then no step is needed for it."""
    shape, _, (domain, codomain, _), scale, partial = region["views"][step[3]]
    return ((shape == domain == codomain or shape == [1]) and partial is None) or scale == [0, 1]


def _drop_the_last_step(rng: Random, region: dict[str, Any]) -> bool:
    return bool(region["derivations"]) and bool(region["derivations"].pop())


def _reorder(rng: Random, region: dict[str, Any]) -> bool:
    steps = region["derivations"]
    conclusions = [step[3] for step in steps]
    is_chain = any(conclusions[0] in step[4] for step in steps[1:]) if steps else False
    if is_chain and not _is_evident(region, steps[0]):
        steps.append(steps.pop(0))
        return conclusions.count(conclusions[0]) == 1
    return False


def _change_a_rule(rng: Random, region: dict[str, Any]) -> bool:
    if not region["derivations"]:
        return False
    step = rng.choice(region["derivations"])
    step[0] = rng.choice(
        [rule for rule in ("counterpart", "scaled", "over-ranks", "united", "magic") if rule != step[0]]
    )
    return True


def _concluded(rng: Random, region: dict[str, Any]) -> Any:
    steps = region["derivations"]
    return region["views"][rng.choice(steps)[3]] if steps else None


def _change_a_scale(rng: Random, region: dict[str, Any]) -> bool:
    view = _concluded(rng, region)
    if view is not None:
        view[3] = [2 * view[3][0], view[3][1]]
    return view is not None


def _change_what_is_pending(rng: Random, region: dict[str, Any]) -> bool:
    view = _concluded(rng, region)
    if view is None or view[0][0] < 2:
        return False
    view[4] = None if view[4] else ["sum", [[1, view[0][0]]]]
    return True


def _change_a_view(rng: Random, region: dict[str, Any]) -> bool:
    view = _concluded(rng, region)
    coordinates = [expr for expr in view[2][2] if expr[1]] if view is not None else []
    if coordinates:
        rng.choice(coordinates)[1][0][3] *= -1
    return bool(coordinates)


def _change_a_map(rng: Random, region: dict[str, Any]) -> bool:
    names = [cell for step in region["derivations"] for cell in step[4] if cell in region["maps"]]
    if not names:
        return False
    coordinates = region["maps"][rng.choice(names)][2]
    rng.choice(coordinates)[0] += 1
    return True


def _change_an_operation(rng: Random, region: dict[str, Any]) -> bool:
    names = [name for name in region["ops"] if region["ops"][name] != "max"]
    if names:
        region["ops"][rng.choice(names)] = "max"
    return bool(names)


def _change_a_term(rng: Random, region: dict[str, Any]) -> bool:
    if not region["derivations"]:
        return False
    rng.choice(region["derivations"])[rng.choice((1, 2))] = 10**6
    return True


def _change_what_was_shown(rng: Random, region: dict[str, Any]) -> bool:
    shown = [answer for answer in region["shown"] if answer is not None]
    answer = rng.choice(shown)
    answer[1][2][0][0] += 1
    return True


def _show_nothing(rng: Random, region: dict[str, Any]) -> bool:
    reached = [place for place, answer in enumerate(region["shown"]) if answer is not None]
    if len(reached) != 1:
        return False
    region["shown"][reached[0]] = None
    return True


TAMPERS: tuple[Tamper, ...] = (
    *(_drop_a_step, _drop_the_last_step, _reorder, _change_a_rule, _change_a_scale, _change_what_is_pending),
    *(
        _change_a_view,
        _change_a_map,
        _change_an_operation,
        _change_a_term,
        _change_what_was_shown,
        _show_nothing,
    ),
)


@pytest.mark.parametrize("tamper", TAMPERS, ids=lambda tamper: tamper.__name__.strip("_"))
def test_what_was_tampered_with_is_rejected(tamper: Tamper) -> None:
    rng, done = Random(4), 0
    for name in (*TAMPERED, "layers"):
        proof = _layers() if name == "layers" else _case(name)
        if proof is None:
            continue
        text = to_json(proof.certificate)
        for _ in range(3):
            stored = json.loads(text)
            if tamper(rng, rng.choice(stored["regions"])):
                done += 1
                assert _read(proof, stored) != (), f"{tamper.__name__} of {name} was not noticed"
    assert done >= 10


def test_a_certificate_is_of_its_programs() -> None:
    """Another constant, another operation, fewer layers: the proof speaks of other regions."""
    proof = _layers()
    other = layers(6, SINGLE)
    assert check(proof.certificate, other, proof.candidate, proof.relations) != ()
    assert (
        check(proof.certificate, _with(proof.baseline, "tanh", "sin"), proof.candidate, proof.relations) != ()
    )
    assert (
        check(proof.certificate, proof.baseline, _with(proof.candidate, "abs", "neg"), proof.relations) != ()
    )


def _with(graph: Graph, op: str, other: str) -> Graph:
    changed = next(node for node in graph.nodes if node.op == op)
    nodes = tuple(replace(node, op=other) if node is changed else node for node in graph.nodes)
    return replace(graph, nodes=nodes)


def test_a_region_that_is_left_out_is_noticed() -> None:
    proof = _layers()
    stored = json.loads(to_json(proof.certificate))
    for place in range(len(stored["used"])):
        shorter = json.loads(to_json(proof.certificate))
        del shorter["used"][place]
        assert _read(proof, shorter) != ()
    stored["used"].reverse()
    assert _read(proof, stored) != ()


def test_a_certificate_under_other_relations_is_rejected() -> None:
    """The relations are assumptions of the proof: under fewer of them nothing is known of what enters."""
    proof = _layers()
    fewer = replace(proof.relations, inputs=proof.relations.inputs[1:])
    assert check(proof.certificate, proof.baseline, proof.candidate, fewer) != ()


def test_stale_rules_are_rejected() -> None:
    proof = _layers()
    stored = json.loads(to_json(proof.certificate))
    stored["rules_version"] += 1
    assert "version" in _read(proof, stored)[0]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[" * 50_000, '{"schema":"scalify certificate"}', '{"schema":1}']
)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    proof = _layers()
    with pytest.raises(InvalidCertificate):
        from_json(text, proof.baseline, proof.candidate, proof.relations)


def _scrambled(rng: Random, value: Any) -> Any:
    """The same JSON with one part of it replaced by something else."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.93:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value[key] = _scrambled(rng, value[key])
        return value
    return rng.choice((None, -1, 0, 1, 2, 7, 10**9, 2**70, "", "sum", "m0", "v1", [], {}, [1, 2], 0.5, True))


def test_hostile_certificates_are_refused_or_found_wanting() -> None:
    """Whatever stands in a file, reading and checking it end with an answer."""
    proof = _layers()
    text = to_json(proof.certificate)
    rng, refused = Random(2), 0
    for _ in range(120):
        refused += bool(_read(proof, _scrambled(rng, json.loads(text))))
    assert refused > 100


def test_what_is_not_proved_has_no_certificate() -> None:
    proof = _layers()
    wrong = _with(proof.candidate, "abs", "neg")
    assert certified(proof.baseline, wrong, relate(proof.baseline, wrong, None)) is None
