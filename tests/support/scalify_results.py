"""Results of verifications as the reports know them, made by hand."""

from dataclasses import replace

from scalify.ir.graph import NodeId, Site
from scalify.report.result import Assumption, Axis, Cost, File, Program, RegionsDone, Result, Trust
from scalify.verdict import (
    Difference,
    Domain,
    Draw,
    Extent,
    GivenValue,
    OutputDifference,
    OutputResult,
    Place,
    Reason,
    Suspect,
    Witness,
    Work,
)

LAYERS = 32
BASELINE = Program(files=(File(path="llama.pt", sha256="0" * 64),), name="llama", nodes=2211, mesh=())
CANDIDATE = Program(
    files=(File(path="llama-tp4.pt", sha256="1" * 64),),
    name="llama",
    nodes=2275,
    mesh=(Axis(name="tp", size=4),),
)
COST = Cost(cpu_s=0.71, wall_s=0.69)
WORK = Work(
    baseline_nodes=2211,
    candidate_nodes=2275,
    ranks=4,
    regions=34,
    distinct_regions=3,
    derivations=412,
    cpu_s=0.0881,
)
_LAYOUTS = {
    "self_attn.q_proj.weight": "dimension 0 sharded over tp",
    "mlp.down_proj.weight": "dimension 1 sharded over tp",
    "input_layernorm.weight": "replicated",
}
NOTES = ("ranks are numbered with the last axis fastest: tp 4",)


def assumptions(*, stated: bool = False) -> tuple[Assumption, ...]:
    """Of a model of 32 layers."""
    weights = (
        Assumption(input=name, of=(name,), text=text, stated=stated)
        for layer in range(LAYERS)
        for part, text in _LAYOUTS.items()
        for name in (f"model.layers.{layer}.{part}",)
    )
    return (Assumption(input="tokens", of=("ids",), text="replicated", stated=False), *weights)


def outputs(*, proved: bool) -> tuple[OutputResult, ...]:
    """Logits, and a key cache per layer, of which the last two are the ones that may fail."""
    caches = (
        OutputResult(
            baseline=f"key.{layer}",
            candidate=f"key.{layer}",
            layout="dimension 1 sharded over tp" if proved or layer < LAYERS - 2 else None,
        )
        for layer in range(LAYERS)
    )
    logits = OutputResult(
        baseline="logits", candidate="out", layout="dimension 2 sharded over tp" if proved else None
    )
    return (logits, *caches)


def proved() -> Result:
    """A proof."""
    return Result(
        scalify="0.1.0",
        verdict="proved",
        reason=None,
        baseline=BASELINE,
        candidate=CANDIDATE,
        outputs=outputs(proved=True),
        assumptions=assumptions(),
        notes=NOTES,
        unused=("rope.cache",),
        progress=RegionsDone(done=34, total=34),
        trust=Trust(rules_version=1, policies=("sums and products may be taken in another order",)),
        work=WORK,
        cost=COST,
    )


def stuck() -> Result:
    """No proof, and a place to look at."""
    return Result(
        scalify="0.1.0",
        verdict="unknown",
        reason=Reason.UNPROVED,
        baseline=BASELINE,
        candidate=CANDIDATE,
        outputs=outputs(proved=False),
        assumptions=assumptions(stated=True),
        suspect=suspect(),
        progress=RegionsDone(done=30, total=34),
        work=WORK,
        cost=COST,
        sources={"model_tp.py:88": "return self.down(hidden)"},
    )


def killed(detail: str = "the time limit of 10 s was reached") -> Result:
    """Nothing was loaded before the worker had to be stopped."""
    return Result(
        scalify="0.1.0",
        verdict="unknown",
        reason=Reason.KILLED,
        detail=detail,
        baseline=Program(files=(File(path="llama.pt"),)),
        candidate=Program(files=tuple(File(path=f"llama.rank{rank}.pt") for rank in range(4))),
        cost=Cost(cpu_s=None, wall_s=10.02),
    )


def suspect() -> Suspect:
    """A sum over ranks that nobody takes."""
    return Suspect(
        candidate=Place(
            node=NodeId("add.7"),
            op="add",
            site=Site("model_tp.py", 88, "forward"),
            scope="model.layers.30.mlp",
            stack=(Site("run.py", 5, "main"), Site("model_tp.py", 88, "forward")),
        ),
        baseline=Place(
            node=NodeId("add.3"),
            op="add",
            site=Site("lib/site-packages/transformers/llama.py", 212, "forward"),
            scope="",
        ),
        known=("the first operand is a sum over tp that was not taken", "the second operand is replicated"),
        needed="both operands whole, or both shared out in the same way",
        chain=tuple(
            Place(
                node=NodeId(f"transpose.{number}"), op="transpose", site=Site("model_tp.py", number), scope=""
            )
            for number in range(80, 88)
        ),
        guess="an all-reduce over tp is missing before this addition",
    )


def refuted() -> Result:
    """Twice what was expected, of one output and what follows from it."""
    return replace(
        stuck(),
        verdict="refuted",
        reason=None,
        witness=witness(),
        witness_file="witness.json",
        suspect=replace(
            suspect(),
            derivable=("2 times the baseline's add.3, on every rank",),
            mended=True,
            extent=Extent(
                baseline_nodes=3,
                candidate_nodes=4,
                begins=(Place(node=NodeId("einsum.6"), op="einsum", site=Site("model_tp.py", 87), scope=""),),
                ends=(Place(node=NodeId("add.7"), op="add", site=Site("model_tp.py", 88), scope=""),),
            ),
        ),
        sources={
            "model_tp.py:86": "    def forward(self, x):",
            "model_tp.py:87": "        hidden = self.up(x)",
            "model_tp.py:88": "        return self.down(hidden)",
            "model_tp.py:89": "",
        },
    )


def witness() -> Witness:
    """Values of a token and of weights, small integers."""
    few = GivenValue(
        name="ids",
        dtype="i64",
        shape=(1, 2),
        role="input",
        domain=Domain(size=8),
        sha256="2" * 64,
        values=(3.0, 1.0),
    )
    weights = (
        GivenValue(
            name=f"model.layers.{layer}.wq",
            dtype="f32",
            shape=(128, 128),
            role="parameter",
            domain=Domain(),
            sha256="3" * 64,
        )
        for layer in range(LAYERS)
    )
    caches = (
        OutputDifference(baseline=f"key.{layer}", candidate=f"key.{layer}", differing=6, compared=8)
        for layer in (30, 31)
    )
    return Witness(
        draw=Draw(family="small integers", seed=7),
        given=(few, *weights),
        difference=Difference(
            baseline="logits",
            candidate="out",
            rank=1,
            index=(0, 0, 3),
            baseline_index=(0, 0, 35),
            expected=1.25,
            found=2.5,
            uncertainty=1e-12,
        ),
        outputs=(
            OutputDifference(
                baseline="logits",
                candidate="out",
                differing=128,
                compared=128,
                pattern="2 times the baseline's",
            ),
            *caches,
        ),
    )
