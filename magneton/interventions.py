"""What may be changed about a system to test what causes its spending. Torch-free; values are JSON scalars.

A recording under interventions is made like any other and says so in its doubts (``INTERVENED``): it can
never pass for one of the user's own configuration. Options and variables are changed before the worker starts
(``magneton.record.request.intervened``); the worker does the rest, in ``magneton.worker.interventions``.
"""

import json
from dataclasses import dataclass
from typing import Literal

Scalar = bool | int | float | str | None

INTERVENED = "intervened"  # the kind of a profile's doubts, one for each intervention


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """An option of the system, as it is spelt behind the system's name."""

    name: str
    value: str
    kind: Literal["option"] = "option"

    @property
    def text(self) -> str:
        return f"option {self.name}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEnvironment:
    name: str
    value: str
    kind: Literal["environment"] = "environment"

    @property
    def text(self) -> str:
        return f"environment variable {self.name}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFlag:
    """A switch of the process, by its name in ``Origin.flags``, set before the system loads and after."""

    name: str  # "torch.backends.cuda.matmul.allow_tf32"
    value: Scalar
    kind: Literal["flag"] = "flag"

    @property
    def text(self) -> str:
        return f"flag {self.name} = {json.dumps(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAttribute:
    """An attribute of every module whose path fits, once the system has loaded."""

    modules: str  # paths as operators have them; * stands for any one part: "model.layers.*.self_attn"
    attribute: str  # may lead through others: "config._attn_implementation"
    value: Scalar
    kind: Literal["attribute"] = "attribute"

    @property
    def text(self) -> str:
        return f"attribute {self.attribute} of {self.modules or 'the model'} = {json.dumps(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceBranch:
    """The one test that stands on ``line`` (if, while, conditional expression) always comes out as ``taken``.

    It is no longer evaluated: what it computed or waited for is gone as well.
    """

    file: str  # as a frame names it: a whole path, or its end
    function: str  # qualified name
    line: int
    taken: bool
    kind: Literal["branch"] = "branch"

    @property
    def text(self) -> str:
        taken = "taken" if self.taken else "not taken"
        return f"branch at {self.file}:{self.line} in {self.function} {taken}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetArgument:
    """A parameter is overwritten whenever the function is entered."""

    file: str
    function: str
    name: str
    value: Scalar
    kind: Literal["argument"] = "argument"

    @property
    def text(self) -> str:
        return f"argument {self.name} of {self.function} in {self.file} = {json.dumps(self.value)}"


Intervention = SetOption | SetEnvironment | SetFlag | SetAttribute | ForceBranch | SetArgument
Edit = ForceBranch | SetArgument  # what changes a function's code
