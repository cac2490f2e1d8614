"""Everything that a verdict says, times left out, as text: for verdicts that should be the same.

As a program it prints that of the cases it is given, from a process with its own order of sets.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scalify_cases import Pair, load_pair

from scalify.ir.graph import Graph
from scalify.prove.certificate_json import to_json
from scalify.prove.verify import verify
from scalify.relate.model import Relations
from scalify.relate.relate import relate
from scalify.report.codec import document
from scalify.report.summary import answered
from scalify.verdict import Proved
from scalify.verification import Problem, Verification


def verdict_text(baseline: Graph, candidate: Graph, relations: Relations) -> str:
    """The result as ``--format json`` has it, without times, and the certificate if there is one."""
    verdict = verify(baseline, candidate, relations)
    if verdict.work is not None:
        verdict = replace(verdict, work=replace(verdict.work, cpu_s=0.0))
    problem = Problem(baseline=baseline, candidate=candidate, relations=relations)
    result = answered(Verification(problem=problem, verdict=verdict), (), ())
    certificate = to_json(verdict.certificate) if isinstance(verdict, Proved) else ""
    return f"{document(result)}\n{certificate}\n"


def texts_of(names: Sequence[str]) -> str:
    """The verdicts on cases, under their own relations and under inferred ones."""
    return "".join(_texts_of(load_pair(name)) for name in names)


def _texts_of(pair: Pair) -> str:
    given = (pair.relations(), relate(pair.baseline, pair.candidate))
    return "".join(verdict_text(pair.baseline, pair.candidate, relations) for relations in given)


def texts_from_process(names: Sequence[str], *, hash_seed: int) -> str:
    """The same from another process, in which strings hash otherwise."""
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, __file__, *names]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.stdout.write(texts_of(sys.argv[1:]))
