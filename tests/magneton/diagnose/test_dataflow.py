import ast
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted import Planted

from magneton.diagnose.conditions import dispatching
from magneton.diagnose.dataflow import Source, find_sources
from magneton.diagnose.source import Located, Sources
from magneton.profile.model import Frame


def sources_of(
    planted: Planted, function: str, part: str, expression: str, *callers: Frame, **observed: str
) -> tuple[Source, ...]:
    """Of ``expression`` on the line that holds ``part``."""
    located = planted.locate(function, part)
    line = planted.line(part)
    node = next(
        each
        for each in ast.walk(located.node)
        if isinstance(each, ast.expr) and each.lineno == line and ast.unparse(each) == expression
    )
    return find_sources(node, located, callers, planted.sources, observed=observed)


def told(found: tuple[Source, ...]) -> list[tuple[str, str]]:
    return [(source.kind, source.name) for source in found]


def within(tmp_path: Path, body: str, expression: str, *, head: str = "") -> list[tuple[str, str]]:
    """The sources of ``expression`` in the last line of a method with ``body``."""
    lines = [*head.splitlines(), "class Model:", "    def forward(self, x, **kwargs):"]
    lines += [f"        {line}" for line in [*body.splitlines(), f"return use({expression})  # last"]]
    planted = Planted(tmp_path, "\n".join(lines))
    return told(sources_of(planted, "Model.forward", "# last", expression))


FIELD = ("config field", "self.config.kind")


@pytest.mark.parametrize(
    ("body", "expression"),
    [
        ("pick = REGISTRY.get_interface(self.config.kind, eager)", "pick"),
        ("pick: object = self.config.kind", "pick"),
        ("first, (pick, third) = 1, (self.config.kind, 2)", "pick"),
        ("first, *pick = self.config.kind", "pick"),
        ("if (pick := self.config.kind):\n    pass", "pick"),
        ("with chosen(self.config.kind) as pick:\n    pass", "pick"),
        ("for pick in self.config.kind:\n    pass", "pick"),
        ("pick = 1\npick += self.config.kind", "pick"),
        ("pick = [each for each in self.config.kind]", "pick"),
        ("pick = fast if self.config.kind == 'k' else slow", "pick"),
        ("if self.config.kind:\n    pick = 1\nelse:\n    pick = 2", "pick"),
        ("match self.config.kind:\n    case str() as pick:\n        pass", "pick"),
        ("pick = getattr(self.config, 'kind', None)", "pick"),
        ("pick = f'{self.config.kind}'", "pick"),
        ("a = self.config.kind\nb = a\npick = not b", "pick"),
    ],
)
def test_assignments_of_all_kinds_lead_to_the_config_field(
    tmp_path: Path, body: str, expression: str
) -> None:
    assert within(tmp_path, body, expression)[0] == FIELD


@pytest.mark.parametrize(
    ("head", "body", "expression", "expected"),
    [
        ("import os", "", "os.environ['FAST']", ("environment variable", "FAST")),
        ("import os", "", "os.getenv('FAST', '0')", ("environment variable", "FAST")),
        ("import os", "flag = os.environ.get('FAST') == '1'", "flag", ("environment variable", "FAST")),
        ("import os\nFAST = os.getenv('FAST')", "", "FAST", ("environment variable", "FAST")),
        ("import torch", "", "torch.backends.cuda.matmul.allow_tf32",
         ("global flag", "torch.backends.cuda.matmul.allow_tf32")),
        ("import torch", "", "torch.get_float32_matmul_precision()",
         ("global flag", "torch.get_float32_matmul_precision")),
        ("FAST = True", "", "FAST", ("global flag", "FAST")),
        ("from lib.flags import FAST", "", "FAST", ("global flag", "lib.flags.FAST")),
        ("from lib import flags", "", "flags.fast", ("global flag", "lib.flags.fast")),
        ("", "", "x", ("argument", "x")),
        ("", "", "self.other", ("computed", "self.other")),
        ("", "y = 3", "y", ("constant", "3")),
        ("", "", "self.config['kind']", ("config field", "self.config['kind']")),
    ],
)  # fmt: skip
def test_what_a_user_can_set_ends_the_search(
    tmp_path: Path, head: str, body: str, expression: str, expected: tuple[str, str]
) -> None:
    assert within(tmp_path, body, expression, head=head) == [expected]


def test_a_definition_that_is_always_replaced_does_not_count(tmp_path: Path) -> None:
    assert within(tmp_path, "pick = self.config.old\npick = self.config.kind", "pick") == [FIELD]
    kept = within(tmp_path, "pick = self.config.old\nif x:\n    pick = self.config.kind", "pick")
    assert {("config field", "self.config.old"), FIELD, ("argument", "x")} == set(kept)


CALLED = """
    class Model:
        def __init__(self, config, scale=2):
            self.fused = config.use_fused
            self.scale = scale

        def forward(self, x, **kwargs):
            return self.layer(x, config=self.config, **kwargs)  # outer

    def layer(x, kind="eager", **kwargs):
        return attend(x, kind, **kwargs)  # middle

    def attend(x, kind, flag=None, mask=1):
        return pick(kind, x, flag, mask)  # inner

    def start(model, settings):
        return model.forward(1, kind=settings.kind, flag=settings.flag)  # start

    @compiled
    async def pick(kind, x, flag, mask):
        return use(kind, flag, mask)  # last
"""


def test_parameters_are_followed_to_callers_three_deep(tmp_path: Path) -> None:
    planted = Planted(tmp_path, CALLED)
    frames = (
        planted.frame("start", "# start"),
        planted.frame("Model.forward", "# outer"),
        planted.frame("layer", "# middle"),
        planted.frame("attend", "# inner"),
    )
    (kind,) = sources_of(planted, "pick", "# last", "kind", *frames, **{"settings.kind": "sdpa"})
    assert (kind.kind, kind.name, kind.value) == ("config field", "settings.kind", "sdpa")
    assert kind.line == planted.line("# start")
    assert any(step.startswith("kind <- settings.kind") for step in kind.via)
    assert "pick is decorated" in kind.weaker
    assert "pick is async" in kind.weaker
    (flag,) = sources_of(planted, "pick", "# last", "flag", *frames)
    assert (flag.kind, flag.name, flag.value) == ("config field", "settings.flag", None)


def test_what_no_caller_gives_is_a_default_or_an_argument(tmp_path: Path) -> None:
    planted = Planted(tmp_path, CALLED.replace("attend(x, kind, **kwargs)", "attend(x, kind)"))
    inner = planted.frame("layer", "# middle"), planted.frame("attend", "# inner")
    assert told(sources_of(planted, "pick", "# last", "mask", *inner)) == [("default", "mask=1")]
    assert told(sources_of(planted, "pick", "# last", "mask")) == [("argument", "mask")]


def test_what_may_hide_in_stars_and_callers_that_cannot_be_read_are_weaker(tmp_path: Path) -> None:
    planted = Planted(tmp_path, CALLED)
    inner = planted.frame("layer", "# middle"), planted.frame("attend", "# inner")
    (mask,) = sources_of(planted, "pick", "# last", "mask", *inner)
    assert (mask.kind, mask.name) == ("argument", "mask=1")
    assert "which may hold mask" in mask.weaker
    (mask,) = sources_of(planted, "pick", "# last", "mask", replace(inner[1], file="gone.py"))
    assert mask.kind == "argument"
    assert "the caller is not known: gone.py is not here" in mask.weaker


def test_attributes_lead_to_where_the_class_sets_them(tmp_path: Path) -> None:
    head = """class Kept:
    def __init__(self, config, scale):
        if config.old:
            self.fused = config.use_fused
        self.scale = scale
    plain = 3
    def forward(self):
        return use(self.fused, self.scale, self.plain)  # last"""
    planted = Planted(tmp_path, head)
    found = told(sources_of(planted, "Kept.forward", "# last", "self.fused"))
    assert found == [("config field", "config.use_fused"), ("config field", "config.old")]
    assert told(sources_of(planted, "Kept.forward", "# last", "self.scale")) == [("argument", "scale")]
    assert told(sources_of(planted, "Kept.forward", "# last", "self.plain")) == [("constant", "3")]


def test_functions_of_the_file_are_entered_with_their_arguments(tmp_path: Path) -> None:
    head = """def one(cfg, unused):
    return two(cfg)
def two(held):
    return three(value=held)
def three(*, value):
    if value.wide:
        return "wide"
    return "narrow\""""
    found = within(tmp_path, "pick = one(self.config, 1)", "pick", head=head)
    assert ("constant", "'wide'") in found
    assert ("argument", "x") not in found
    assert any("config" in name for _, name in found)


def test_closures_lead_to_the_enclosing_function_and_are_weaker(tmp_path: Path) -> None:
    planted = Planted(
        tmp_path,
        """
        def decorate(function, mode):
            chosen = config.kind
            def wrapper(*args, **kwargs):
                return function(chosen, mode)  # last
            return wrapper
        """,
    )
    (chosen,) = sources_of(planted, "decorate.<locals>.wrapper", "# last", "chosen")
    assert (chosen.kind, chosen.name) == ("config field", "config.kind")
    assert "enclosing function" in chosen.weaker
    (mode,) = sources_of(planted, "decorate.<locals>.wrapper", "# last", "mode")
    assert (mode.kind, mode.name) == ("argument", "mode")


@pytest.mark.parametrize(
    "body",
    [
        "def f(x):\n    x = f(x)\n    return x  # last",
        "def f(x):\n    while x:\n        x = y\n        y = x\n    return x  # last",
        "def g(x):\n    return f(g(x))\ndef f(x):\n    x = g(x)\n    return x  # last",
        "def f(x):\n    x = (lambda: x)()\n    return x  # last",
        "def f(x):\n    x = [x for x in x]\n    return x  # last",
    ],
)
def test_loops_and_recursion_end(tmp_path: Path, body: str) -> None:
    planted = Planted(tmp_path, body)
    caller = planted.frame("f", "# last")
    assert len(sources_of(planted, "f", "# last", "x", *[caller] * 50)) < 20


NAMES = st.sampled_from(["a", "b", "c", "self.a", "f(a)", "f(b, c)", "1", "self.config.k"])
TARGETS = st.sampled_from(["a", "b", "c", "self.a", "a, b", "(a, *c), b"])
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, TARGETS, NAMES),
    st.builds("a += {}".format, NAMES),
    st.builds("if {}: b = {}".format, NAMES, NAMES),
    st.builds("for a in {}: c = {}".format, NAMES, NAMES),
    st.builds("while {}: a = {}".format, NAMES, NAMES),
    st.builds("return {}".format, NAMES),
    st.builds("b = (lambda c: {})({})".format, NAMES, NAMES),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(STATEMENTS, max_size=8), st.lists(STATEMENTS, max_size=4), NAMES)
def test_a_slice_always_ends(tmp_path: Path, body: list[str], other: list[str], asked: str) -> None:
    first = "\n".join(f"        {line}" for line in [*body, f"return use({asked})  # last"])
    second = "\n".join(f"    {line}" for line in [*other, "return f(a, f(b))"])
    planted = Planted(tmp_path, f"class M:\n    def g(self, a, b=1):\n{first}\n\ndef f(a, b=2):\n{second}\n")
    frames = [planted.frame("M.g", "# last")] * 3
    found = sources_of(planted, "M.g", "# last", asked, *frames)
    assert all(source.file == "planted.py" and 0 < source.line <= len(planted.lines) for source in found)
    assert found == sources_of(planted, "M.g", "# last", asked, *frames)


def test_the_attention_of_transformers_leads_to_its_config_field() -> None:
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        pytest.skip("transformers is not installed")
    root = Path(spec.origin).parent.parent
    file = "transformers/models/llama/modeling_llama.py"
    code = "attn_output, attn_weights = attention_interface("
    lines = [line.strip() for line in (root / file).read_text(encoding="utf-8").splitlines()]
    frame = Frame(file=file, line=lines.index(code) + 1, function="LlamaAttention.forward", code=code)
    sources = Sources([root])
    located = sources.locate(frame)
    assert isinstance(located, Located)
    condition = dispatching(located.node, frame.line, "eager_attention_forward", "sdpa_attention_forward")
    assert condition is not None
    assert [ast.unparse(each) for each in condition.deciding] == ["attention_interface"]
    first = find_sources(condition.test, located, (), sources)[0]
    assert (first.kind, first.name) == ("config field", "self.config._attn_implementation")
