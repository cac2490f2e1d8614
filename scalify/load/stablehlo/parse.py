"""A file of StableHLO as MLIR's own objects, which jaxlib brings.

In: bytes, not trusted. Out: a verified module. The file is parsed and printed in a process of its own first;
what is parsed here is that print. Names that stand for attributes and locations may refer to each other: how
long they are when written out is bounded before any is.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scalify.errors import InvalidGraph, ScalifyError

MAX_DEPTH = 300
MAX_WRITTEN_OUT = 2_000_000
TIME_LIMIT_S = 300
_DAMAGED = (
    "write it again: jax.jit(f).lower(...).as_text(debug_info=True), or exported.mlir_module_serialized"
)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|->|[()\[\]{}<>]')
_ALIAS = re.compile(r"^([#!][A-Za-z_][\w.$-]*) = (.*)$", re.MULTILINE)
_REFERENCE = re.compile(r'"(?:[^"\\\n]|\\.)*+"|([#!][A-Za-z_][\w.$-]*)')


def parsed(data: bytes) -> Any:
    """The module in a file of StableHLO text or bytecode."""
    if find_spec("jaxlib") is None:
        raise ScalifyError("StableHLO is read by jaxlib, which is not installed", hint="pip install jaxlib")
    if not data.startswith(b"ML\xefR"):
        _check_depth(data)
    text = _canonical(data)
    _check_aliases(text)
    return _module(text)


def _check_depth(data: bytes) -> None:
    """Brackets are not nested too deep for a parser that recurses."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidGraph("it is not UTF-8 text throughout", hint=_DAMAGED) from None
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "([{<":
            depth += 1
        elif token in ")]}>":
            depth = max(depth - 1, 0)
        if depth > MAX_DEPTH:
            raise InvalidGraph(f"brackets are nested more than {MAX_DEPTH} deep", hint=_DAMAGED)


def _canonical(data: bytes) -> str:
    program = Path(__file__).with_name("canonical.py")
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(program)], input=data, capture_output=True, timeout=TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise InvalidGraph(f"parsing takes more than {TIME_LIMIT_S} s", hint=_DAMAGED) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines() if done.returncode > 0 else []
        told = [line for line in lines if "error:" in line] or [line for line in lines if line.strip()][-1:]
        why = told[0].partition("error: ")[2] or told[0] if told else "the parser crashed on it"
        raise InvalidGraph(f"it is no StableHLO that jaxlib reads: {_shown(why)}", hint=_DAMAGED)
    return done.stdout.decode()


def _shown(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])


def _check_aliases(text: str) -> None:
    """No alias is too long once those in it are written out; sizes are added up without writing any."""
    bodies = {match.group(1): match.group(2) for match in _ALIAS.finditer(text)}
    references = {
        name: [found for found in _REFERENCE.findall(body) if found in bodies]
        for name, body in bodies.items()
    }
    sizes: dict[str, int] = {}
    for name in bodies:
        _measure(name, bodies, references, sizes)


def _measure(
    start: str, bodies: Mapping[str, str], references: Mapping[str, list[str]], sizes: dict[str, int]
) -> None:
    pending = [start]
    while pending:
        name = pending[-1]
        waiting = [inner for inner in references[name] if inner not in sizes]
        if waiting and len(pending) <= len(bodies):
            pending.extend(waiting)
            continue
        pending.pop()
        sizes[name] = len(bodies[name]) + sum(sizes.get(inner, 0) for inner in references[name])
        if sizes[name] > MAX_WRITTEN_OUT:
            raise InvalidGraph(f"{name} is endless once it is written out", hint=_DAMAGED)


def _module(text: str) -> Any:
    from jaxlib.mlir import ir

    from scalify.load.stablehlo.canonical import dialects

    try:
        return ir.Module.parse(text, dialects())
    except (ir.MLIRError, ValueError) as error:
        raise InvalidGraph(
            f"it is no StableHLO that jaxlib reads: {_shown(str(error))}", hint=_DAMAGED
        ) from None
