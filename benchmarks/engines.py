"""How much of vLLM, SGLang and Transformers is paired with one another, in all and per layer.

    python benchmarks/engines.py [--scale tiny] [--layers 2 4] [--python NAME=PATH] [--yes]
                                 [--profiles FOLDER]

Records a Llama with two depths and else equal, on each system, and matches the three pairs. Per pair and
phase, of each side: the share of working operators (no views, no mere memory, no synchronisations) and of
energy in paired regions, of the whole deeper model and of a layer (the difference of the depths); the
region with the largest share of a layer's energy; region pairs per layer; and every kind of operator that is
left over, with its reason and why its results are no boundaries. Goals: at least 98 % of a layer's working
operators, leaving out those whose results only go into a synchronisation (an add of two numbers whose sum
the host reads), and the granularity that benchmarks/granularity.py asks for. The systems run in their own
environments, made where they are missing (--yes agrees to that), or in the interpreters that --python names.
With --profiles recordings are kept in FOLDER, and those that lie there are not made again. Writes
benchmarks/results/engines.json.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

from granularity import DEAREST, FEWEST, Granularity, granularity
from paired_shares import Left, PhaseShares, Share, matched, shares
from results import write_result

from magneton.cache import built_once, cache_folder
from magneton.cli.asked import named_pythons
from magneton.cli.conversation import conversation_with_user
from magneton.errors import MagnetonError
from magneton.models.preset import Recipe, read_preset, recipe_at
from magneton.models.synthesis import recipe_hash, synthesise
from magneton.profile.continuation import continuation_of
from magneton.profile.model import Profile
from magneton.profile.store import load, save
from magneton.record.progress import NoProgress
from magneton.record.session import record
from magneton.settings import Settings, plan_of, requests_for
from magneton.sides import ready_requests
from magneton.system import SystemSpec
from magneton.workload import Continuation, Phase

SYSTEMS = "vllm", "sglang", "transformers"
PAIRS = ("vllm", "sglang"), ("vllm", "transformers"), ("sglang", "transformers")
PRESET = "llama"
PAIRED_GOAL = 0.98
ROUNDS, REPLAYS = 3, 15  # the energy of a layer is a small difference

Recordings = Mapping[tuple[str, int], Profile]  # by system and number of layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One phase of one pair. ``granularity`` is that of the deeper model."""

    shares: PhaseShares
    granularity: Granularity

    @property
    def good(self) -> bool:
        paired = min(side.of_operators_but_for_syncs for side in self.shares.layer)
        return paired >= PAIRED_GOAL and self.granularity.good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--scale", default="tiny", help="of the preset: widths, the depth is --layers")
    parser.add_argument("--layers", type=int, nargs=2, default=[2, 4])
    parser.add_argument("--python", action="append", help="NAME=PATH, as magneton compare takes it")
    parser.add_argument("--yes", action="store_true", help="install environments without asking")
    parser.add_argument("--profiles", type=Path, help="keep recordings in this folder")
    asked = parser.parse_args()
    depths = sorted(asked.layers)
    if not 0 < depths[0] < depths[1]:
        parser.error("--layers wants two different numbers of layers")
    try:
        recordings = obtained(asked, depths)
    except MagnetonError as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
    results: dict[str, Mapping[Phase, Figures]] = {}
    for baseline, candidate in PAIRS:
        results[f"{baseline} against {candidate}"] = found = figures(recordings, baseline, candidate, depths)
        for phase, it in found.items():
            print(table(baseline, candidate, phase, it), end="\n\n")
    systems = {name: recordings[name, depths[-1]].origin for name in SYSTEMS}
    made_with = {
        name: {"options": dict(o.options), "versions": dict(o.versions)} for name, o in systems.items()
    }
    told_all = {
        "goals": {
            "share_of_working_operators_of_a_layer": PAIRED_GOAL,
            "fewest_regions_of_a_block": FEWEST,
            "dearest_divisible_share": DEAREST,
        },
        "layers": depths,
        "systems": made_with,
        "pairs": {pair: {phase: told(it) for phase, it in found.items()} for pair, found in results.items()},
    }
    print(f"written to {write_result('engines', told_all, systems[SYSTEMS[0]]).name}")


def obtained(asked: argparse.Namespace, depths: Sequence[int]) -> Recordings:
    """Every system with every depth; all are fed the tokens that the first one chose."""
    with TemporaryDirectory() as temporary:
        folder = asked.profiles or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        return {
            (name, layers): profile
            for layers in depths
            for name, profile in _recorded(_settings(asked, layers), asked.yes, folder).items()
        }


def model_folder(scale: str, layers: int) -> Path:
    """The preset with this many layers, synthesised once."""
    recipe = recipe_with(scale, layers)
    place = cache_folder() / "models" / f"{PRESET}-{scale}-{layers}-layers-{recipe_hash(recipe)}"
    return built_once(place, lambda aside: synthesise(recipe, aside))


def recipe_with(scale: str, layers: int) -> Recipe:
    preset = read_preset(PRESET)
    recipe_at(preset, scale)  # refuses a scale that is none
    sizes = {**preset.scales[scale], "layers": layers}
    return recipe_at(replace(preset, scales={**preset.scales, scale: sizes}), scale)


def _settings(asked: argparse.Namespace, layers: int) -> Settings:
    return Settings(
        model=str(model_folder(asked.scale, layers)),
        meter="modelled",
        device="cpu",
        threads=1,
        rounds=ROUNDS,
        python=named_pythons(asked.python),
    )


def _recorded(settings: Settings, yes: bool, folder: Path) -> Mapping[str, Profile]:
    plan = replace(plan_of(settings), block_s=0.1, timeline_s=0.02, warm_up_s=0.1, in_place_rounds=REPLAYS)
    requests = requests_for([SystemSpec(name=name, options={}) for name in SYSTEMS], settings)
    found: dict[str, Profile] = {}
    fed: Continuation | None = None
    with ready_requests(requests, settings, conversation_with_user(yes=yes), NoProgress()) as ready:
        for request in ready:
            place = folder / f"{request.system}-{request.model}.mgn"
            if not place.exists():
                print(f"recording {request.system} of {request.model}", file=sys.stderr)
                save(record(replace(request, continuation=fed), plan), place)
            found[request.system] = load(place)
            fed = fed or continuation_of(found[request.system])
    return found


def figures(
    recordings: Recordings, baseline: str, candidate: str, depths: Sequence[int]
) -> Mapping[Phase, Figures]:
    shallow, deep = (
        matched(layers, recordings[baseline, layers], recordings[candidate, layers]) for layers in depths
    )
    sizes = granularity(deep.ledgers[0].profile, deep.ledgers[1].profile, deep.matching)
    return {
        phase: Figures(shares=it, granularity=sizes[phase]) for phase, it in shares(shallow, deep).items()
    }


def table(baseline: str, candidate: str, phase: Phase, it: Figures) -> str:
    names = baseline, candidate
    head = f"{baseline} against {candidate}, {phase}: goals {'met' if it.good else 'MISSED'}"
    lines = [head, "-" * len(head), f"{'':26s}{'operators':>24s}{'energy':>12s}{'region pairs':>18s}"]
    for what, both in (("forward", it.shares.whole), ("layer", it.shares.layer)):
        lines += [_row(f"{name}, {what}", side) for name, side in zip(names, both, strict=True)]
    for name, side in zip(names, it.shares.layer, strict=True):
        if side.operators_for_syncs:
            lines.append(
                f"{name}: {side.operators_for_syncs:.1f} of these serve a synchronisation only;"
                f" {side.of_operators_but_for_syncs:.1%} of the others"
            )
    size = it.granularity
    lines.append(f"fewest region pairs in a block: {size.fewest}; regions across blocks: {size.across}")
    lines.append(f"dearest divisible region: {size.dearest_divisible.share:.1%} of a forward")
    if (largest := it.shares.largest) is not None:
        lines.append(f"largest region of layers, in {largest.where or 'no module'}:")
        for name, share, ops in zip(names, largest.share_of_layer, largest.operators, strict=True):
            lines += _wrapped(f"  {name} {share:.0%} of a layer: {_counted(ops)}")
    for name, left in zip(names, it.shares.left, strict=True):
        lines += _left_lines(name, left)
    return "\n".join(lines)


def _row(name: str, share: Share) -> str:
    counts = f"{share.operators_paired:.1f}/{share.operators:.1f}"
    return f"{name:26s}{counts:>15s}{share.of_operators:9.1%}{share.of_energy:12.1%}{share.regions:18.1f}"


def _left_lines(name: str, left: Sequence[Left]) -> list[str]:
    if not left:
        return [f"nothing of {name} is left over"]
    lines = [f"left over of {name} (a layer, a forward):"]
    for it in left:
        verdicts = ", ".join(it.kind.verdicts)
        lines += _wrapped(
            f"  {it.per_layer:4.1f} {it.times:5.1f}  {it.kind.name}: {it.kind.reason} ({verdicts})"
        )
        lines += _wrapped(f"{'':14s}{it.kind.source}")
    return lines


def _wrapped(text: str) -> list[str]:
    return wrap(text, 80, subsequent_indent=" " * 14, break_long_words=False, break_on_hyphens=False)


def _counted(names: Sequence[str]) -> str:
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in Counter(names).items())


def told(it: Figures) -> dict[str, object]:
    """As JSON: sides in the order of the pair's name."""
    size, largest = it.granularity, it.shares.largest
    return {
        "goals_met": it.good,
        "forward": [_told(share) for share in it.shares.whole],
        "layer": [_told(share) for share in it.shares.layer],
        "fewest_regions_of_a_block": size.fewest,
        "regions_across_blocks": size.across,
        "dearest_divisible_share_of_a_forward": round(size.dearest_divisible.share, 4),
        "largest": None if largest is None else asdict(largest),
        "left_over": [
            [{**asdict(left.kind), "forward": left.times, "layer": left.per_layer} for left in side]
            for side in it.shares.left
        ],
    }


def _told(share: Share) -> dict[str, float]:
    figures = {
        **asdict(share),
        "share_of_operators": share.of_operators,
        "share_of_operators_but_for_syncs": share.of_operators_but_for_syncs,
        "share_of_energy": share.of_energy,
    }
    return {name: float(f"{value:.4g}") for name, value in figures.items()}


if __name__ == "__main__":
    main()
