"""B35's legal case, the other way round: the candidate takes apart and stacks again."""

from dataclasses import replace

from scalify_cases import load_pair

_given = load_pair("proved/b35_stack_in_order")

PAIR = replace(_given, baseline=_given.candidate, candidate=_given.baseline)
