"""The report, word by word at 80 columns; and what holds of it at any width."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scalify_results import killed, proved, refuted, stuck

from scalify.report.page import Page
from scalify.report.result import Result
from scalify.report.text import add_report
from scalify.verdict import Reason

PROVED = """\
PROVED: the outputs are equal over the reals
  baseline   llama.pt: 2,211 nodes on one device
  candidate  llama-tp4.pt: 2,275 nodes on 4 ranks (tp=4)

Outputs
  - out for logits: dimension 2 sharded over tp
  - 32 outputs key.*: dimension 1 sharded over tp

Under these assumptions
  - tokens of ids: replicated
  - 32 inputs model.layers.*.self_attn.q_proj.weight: dimension 0 sharded over
    tp
  - 32 inputs model.layers.*.mlp.down_proj.weight: dimension 1 sharded over tp
  - 32 inputs model.layers.*.input_layernorm.weight: replicated
  - ranks are numbered with the last axis fastest: tp 4
  - rope.cache of the baseline: not used by the candidate

What the proof leans on
  - rules of version 1
  - sums and products may be taken in another order

34 regions (3 distinct); 412 derivations; 0.088 s proving; 0.710 s of processor
time in all, 0.690 s by the clock
"""

STUCK = """\
UNKNOWN: no rule shows that the outputs are equal; they may differ, or a rule
may be missing
  baseline   llama.pt: 2,211 nodes on one device
  candidate  llama-tp4.pt: 2,275 nodes on 4 ranks (tp=4)

Where it stops
  likely     an all-reduce over tp is missing before this addition
  candidate  add %add.7 in model.layers.30.mlp
             model_tp.py:88 in forward
      > 88 | return self.down(hidden)
  called by  run.py:5 in main
  baseline   add %add.3
             transformers/llama.py:212 in forward
  known      the first operand is a sum over tp that was not taken
             the second operand is replicated
  needed     both operands whole, or both shared out in the same way
  around it  transpose %transpose.80  model_tp.py:80
             transpose %transpose.81  model_tp.py:81
             transpose %transpose.82  model_tp.py:82
             transpose %transpose.83  model_tp.py:83
             transpose %transpose.84  model_tp.py:84
             transpose %transpose.85  model_tp.py:85
             and 2 more: -v or scalify explain shows them

What to do
  check the likely mistake; if both programs are right, the proof needs a rule

Outputs
  - out for logits: not proved
  - 30 outputs key.*: dimension 1 sharded over tp
  - 2 outputs key.{30-31}: not proved

Under these assumptions
  - tokens of ids: replicated
  - 32 inputs model.layers.*.self_attn.q_proj.weight: dimension 0 sharded over
    tp (stated)
  - 32 inputs model.layers.*.mlp.down_proj.weight: dimension 1 sharded over tp
    (stated)
  - 32 inputs model.layers.*.input_layernorm.weight: replicated (stated)

30 of 34 regions proved; 34 regions (3 distinct); 412 derivations; 0.088 s
proving; 0.710 s of processor time in all, 0.690 s by the clock
"""

REFUTED = """\
REFUTED: there are inputs on which the outputs differ
  baseline   llama.pt: 2,211 nodes on one device
  candidate  llama-tp4.pt: 2,275 nodes on 4 ranks (tp=4)

How they differ
  output     out (the baseline's logits): all 128 elements differ
             each of them is 2 times the baseline's
  element    [0, 0, 3] on rank 1, in the baseline [0, 0, 35]
  expected   1.25, as the baseline computes it
  found      2.5; rounding explains 1e-12 at most
  also       2 outputs key.{30-31}
  inputs     ids i64[1, 2] = [3, 1]
             32 inputs model.layers.*.wq f32[128, 128]
  values     drawn as 'small integers', seed 7
  replay     scalify replay witness.json

Where it goes wrong
  likely     an all-reduce over tp is missing before this addition
  candidate  add %add.7 in model.layers.30.mlp
             model_tp.py:88 in forward
        86 | def forward(self, x):
        87 |     hidden = self.up(x)
      > 88 |     return self.down(hidden)
  called by  run.py:5 in main
  baseline   add %add.3
             transformers/llama.py:212 in forward
  known      the first operand is a sum over tp that was not taken
             the second operand is replicated
  needed     both operands whole, or both shared out in the same way
  instead    2 times the baseline's add.3, on every rank
  checked    put right by itself, it makes the output right
  around it  transpose %transpose.80  model_tp.py:80
             transpose %transpose.81  model_tp.py:81
             transpose %transpose.82  model_tp.py:82
             transpose %transpose.83  model_tp.py:83
             transpose %transpose.84  model_tp.py:84
             transpose %transpose.85  model_tp.py:85
             and 2 more: -v or scalify explain shows them
  unproved   4 operations of the candidate for 3 operations of the baseline
             from einsum %einsum.6  model_tp.py:87
             to add %add.7  model_tp.py:88

Outputs
  - out for logits: differs
  - 30 outputs key.*: dimension 1 sharded over tp
  - 2 outputs key.{30-31}: differs

Under these assumptions
  - tokens of ids: replicated
  - 32 inputs model.layers.*.self_attn.q_proj.weight: dimension 0 sharded over
    tp (stated)
  - 32 inputs model.layers.*.mlp.down_proj.weight: dimension 1 sharded over tp
    (stated)
  - 32 inputs model.layers.*.input_layernorm.weight: replicated (stated)

30 of 34 regions proved; 34 regions (3 distinct); 412 derivations; 0.088 s
proving; 0.710 s of processor time in all, 0.690 s by the clock
"""

KILLED = """\
UNKNOWN: the prover was stopped: the time limit of 10 s was reached
  baseline   llama.pt: not loaded
  candidate  llama.rank0.pt and 3 more: not loaded

What to do
  give it more: --time-limit SECONDS, --memory-limit SIZE

10 s by the clock
"""


def printed(result: Result, *, width: int = 80, full: bool = False, colour: bool = False) -> str:
    page = Page(width=width, colour=colour)
    add_report(page, result, full=full)
    return page.text()


@pytest.mark.parametrize(
    ("result", "golden"),
    [(proved, PROVED), (stuck, STUCK), (refuted, REFUTED), (killed, KILLED)],
    ids=["proved", "stuck", "refuted", "killed"],
)
def test_the_report_at_80_columns(result: Callable[[], Result], golden: str):
    assert printed(result()) == golden


def test_in_full_the_chain_is_whole_and_callers_are_named():
    text = printed(stuck(), full=True)
    assert "transpose %transpose.87  model_tp.py:87" in text
    assert "called by  run.py:5 in main" in text
    assert "more:" not in text


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_is_wider_than_the_page_and_none_ends_in_blanks(width: int):
    for result in (proved(), stuck(), refuted(), killed()):
        lines = printed(result, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert all(line == line.rstrip() for line in lines)


def test_at_160_columns_nothing_needs_to_be_wrapped():
    assert len(printed(proved(), width=160).splitlines()) == len(PROVED.splitlines()) - 2


def test_colour_changes_no_character():
    coloured = printed(stuck(), colour=True)
    assert "\x1b[1;35mUNKNOWN\x1b[0m" in coloured
    plain = coloured
    for code in ("1;35", "1;32", "1;4", "1", "36", "3", "2", "0"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == STUCK


def test_an_element_without_a_value_is_said_to_have_none():
    text = printed(with_difference(found=None))
    assert "found      no value: it is not a number, or lies outside of a table" in text


def test_numbers_that_agree_in_many_digits_are_shown_in_full():
    text = printed(with_difference(expected=1.0000000000001, found=1.0))
    assert "expected   1.0000000000001, as" in text
    assert "found      1.0;" in text


def test_without_a_file_it_is_said_how_to_get_one():
    assert "replay     write the values with --witness FILE first" in printed(
        replace(refuted(), witness_file=None)
    )


def test_a_lead_is_called_no_refutation():
    text = printed(replace(stuck(), lead="on shapes half as large values differ"))
    assert "\nA reason to look, but no refutation\n  on shapes half as large values differ\n" in text


def test_long_lines_of_source_are_cut_and_hostile_ones_escaped():
    source = {"model_tp.py:88": "x" * 400, "model_tp.py:89": "\x1b[2J::error::"}
    lines = printed(replace(refuted(), sources=source)).splitlines()
    (own,) = (line for line in lines if line.startswith("      > 88 | "))
    assert (len(own), own[-1]) == (80, "…")
    assert r"        89 | \x1b[2J\x3a:error::" in lines


def with_difference(**changes: Any) -> Result:
    result = refuted()
    assert result.witness is not None
    difference = replace(result.witness.difference, **changes)
    return replace(result, witness=replace(result.witness, difference=difference))


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_a_sentence_with_something_to_do(reason: Reason):
    text = printed(replace(stuck(), reason=reason, missing=("op custom.foo",)))
    assert text.startswith("UNKNOWN: ")
    assert "\nWhat is missing\n  - op custom.foo\n" in text
    assert "\nWhat to do\n  " in text
