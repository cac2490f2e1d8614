"""In sentences: why an operator is in its region or in none, and why a value is paired or not."""

from collections.abc import Iterator, Sequence

from magneton.match.explanation import Explanation, SinkAccount
from magneton.match.model import Unpaired, ValuePair
from magneton.match.recognition import Fate, Recognition, Rival, Verdict
from magneton.report.mentioned import MentionedValue, value_line

_COLUMNS = {
    "count": "elements",
    "pos_inf": "+inf",
    "neg_inf": "-inf",
    "nan": "NaN",
    "huge": "beyond 1e30",
}
_LEFT: dict[Unpaired, str] = {
    "sync": "it brings data to the host, or works for an operator that does",
    "alloc": "it only makes memory, whose content is not a value",
    "side-effect": "it writes, or works for one that writes, into memory from which nothing else is computed",
    "dead": "the last operator of the phase is not among those, so nothing comes of them",
    "not-sketched": "no result of it was sketched",
    "ambiguous": "its result is near enough to several values, and nothing tells which is its counterpart",
    "low-entropy": "its results hold too few different numbers to be recognised",
    "no-counterpart-value": "no value of the other side is its counterpart (below: what comes nearest)",
    "setup": "",
}


def place_sentences(explanation: Explanation, reaches: Sequence[str], top: int) -> Iterator[str]:
    """``reaches`` are the values of this side that its results become first."""
    if explanation.region is not None:
        kind = "shared region" if explanation.region.shared else "region"
        yield f"It lies in {kind} {explanation.region.number}, described below."
    else:
        yield "It is left over: no region of both sides holds it."
    yield from _way(explanation, reaches, top)
    if explanation.sink is not None:
        yield from _sink(explanation.sink, explanation.region is not None)
    if explanation.leftover == "setup":
        yield _setup(explanation)
    elif explanation.leftover is not None:
        yield f"It is left over because {_LEFT[explanation.leftover]}."


def _way(explanation: Explanation, reaches: Sequence[str], top: int) -> Iterator[str]:
    shown = "; ".join(reaches[:top]) + (f"; {len(reaches) - top} more" if len(reaches) > top else "")
    match explanation.why:
        case "computes":
            yield f"It computes what the other side has too: {shown}."
        case "remakes":
            yield (
                "It makes anew a value that the other side has too, for several readers or not from that"
                f" value alone. That belongs to where the value is computed: {shown}."
            )
        case "writes-for-reader":
            yield (
                "It writes a value that the other side has too into memory that was there (a cache). That"
                f" belongs to the region which reads it first and computes: {shown}."
            )
        case "reaches-one" if _lays_out(explanation):
            yield (
                "It only lays out anew a value that the other side has too; all that reads it lies in one"
                " region."
            )
        case "reaches-one" if reaches:
            yield f"All that reads its results lies in one region. There they become: {shown}."
        case "reaches-one":
            yield "All that reads its results belongs to set-up that several regions share."
        case "reaches-first":
            yield (
                "Its results are read in several regions that depend on each other. It belongs to the first,"
                f" where they become: {shown}."
            )
        case "serves-several":
            yield (
                "It depends on settings only (integer inputs, buffers, constants), and several regions read"
                " what is made of them: it is shared set-up."
            )
        case "reaches-nothing":
            yield "Nothing that the other side has too is computed from its results."


def _lays_out(explanation: Explanation) -> bool:
    return all(w.pair is not None and w.recognition.root != w.recognition.value for w in explanation.writes)


def _sink(sink: SinkAccount, paired: bool) -> Iterator[str]:
    operators, read = len(sink.operators), len(sink.consumes)
    among = (
        "It stands alone"
        if operators == 1
        else f"It is one of {operators} operators that work on each other's results"
    )
    reading = (
        f"which read {_times(read, 'paired value')}"
        if operators > 1
        else f"reads {_times(read, 'paired value')}"
    )
    yield f"{among}, {reading}." if operators > 1 else f"{among} and {reading}."
    if paired:
        yield "The other side has such operators too, which read the same values: both are one region."
    elif not sink.consumes:
        yield "What reads no paired value has nothing by which to find its counterpart."
    elif not sink.counterparts:
        yield "No such operators of the other side read the same values."
    else:
        yield (
            f"{_times(len(sink.counterparts), 'set')} of such operators of the other side read the same"
            " values, but compute something else or are not as many."
        )


def _setup(explanation: Explanation) -> str:
    if explanation.ready:
        return (
            "It is left over because the other side computes nothing here: it has the values before the"
            " phase."
        )
    return (
        "It is left over because no set-up of the other side serves the same regions, or at least half of"
        f" them (this one serves {explanation.serves})."
    )


def verdict_sentence(recognition: Recognition) -> str:
    """Whether the value is recognised, and what decided it."""
    few = f"{_times(recognition.distinct, 'different number')} among the elements sampled"
    nearest = min((rival.distance for rival in recognition.rivals), default=float("inf"))
    drifted = sum(rival.fate == "drifted" for rival in recognition.rivals)
    near = _times(recognition.within or drifted, "value")
    sentences: dict[Verdict, str] = {
        "paired": f"recognised: {few}",
        "no-content": "no value: memory without content, or an unused result beside one that is used",
        "not-sketched": "not sketched, so it cannot be recognised",
        "low-entropy": (
            f"not paired: {few}, too few to recognise it by, and no value computed from the same paired"
            " values holds the same, or not equally many do"
        ),
        "stray": (
            "not paired: it equals a paired value, but nothing on the other side is computed like this one"
        ),
        "other-generation": "not paired: the other side makes these numbers anew less often",
        "dropped": (
            "not paired: it was, but regions would have depended on each other in a circle, or their sides on"
            " different values"
        ),
        "ambiguous": f"not paired: {near} of the other side are near enough, and nothing tells which it is",
        "taken": f"not paired: {near} of the other side are near enough, and paired with others",
        "unconfirmed": (
            f"not paired: {near} of the other side are within what rounding was measured to move it by, but"
            " neighbours do not tell that it is the same"
        ),
        "too-far": (
            f"not paired: the nearest value of the other side is {nearest:.2g} apart, where up to"
            f" {recognition.limit:.2g} passes for equal"
        ),
        "nothing-comparable": (
            f"not paired: no value of the other side has as many elements ({recognition.count}), as many of"
            " them not finite, and a magnitude that is near"
        ),
    }
    return sentences[recognition.verdict]


def pair_sentence(pair: ValuePair, recognition: Recognition) -> str:
    """On what evidence ``pair`` stands."""
    apart = f"{pair.distance:.2g} apart, up to {recognition.limit:.2g} passes for equal"
    rivals = _times(recognition.within, "value")
    match pair.evidence:
        case "value" if recognition.within > 1:
            return f"{apart}; of {rivals} that near it is the nearest by far"
        case "value":
            return f"{apart}; nothing else is that near"
        case "composite":
            return f"a whole and its parts: their sketches add up to within {pair.distance:.2g}"
        case "context" if recognition.high_entropy and pair.distance > recognition.limit:
            allowed = max((r.allowed for r in recognition.rivals if r.fate == "paired"), default=0.0)
            return (
                f"{apart} by itself, and up to {allowed:.2g} as far as rounding was measured to move it; its"
                " neighbours are paired with this one's"
            )
        case "context" if recognition.high_entropy:
            return f"{apart}; of {rivals} that near it is the one whose neighbours are paired with this one's"
        case "context":
            return (
                f"{apart}; computed from the same paired values, and equally many such values on both sides"
            )
        case "order":
            return f"{apart}; of {rivals} that near, by order of execution alone"
        case "output":
            return "both are the last result"
        case "input" | "parameter":
            return f"{apart}; it existed before the phase"


def rival_line(
    rival: Rival, there: MentionedValue, ours: MentionedValue, taken: Sequence[MentionedValue]
) -> str:
    """One value class of the other side: how far it is, and what became of it."""
    others = " + ".join(map(value_line, taken))
    fates: dict[Fate, str] = {
        "paired": "paired with this one",
        "open": "near enough, paired with nothing",
        "taken": f"near enough, but paired with {others},",
        "second": "near enough, but this one is paired with another",
        "drifted": "near enough for how far rounding moves it"
        + (f", but paired with {others}," if taken else ", but their neighbours do not agree"),
        "too-far": "too far",
        "other-counts": "not comparable",
    }
    if rival.fate != "other-counts":
        return f"{rival.distance:.2g} apart, {fates[rival.fate]}: {value_line(there)}"
    counts = [
        f"{getattr(there, column)} elements {_COLUMNS[column]} against {getattr(ours, column)}"
        for column in rival.differs
    ]
    return f"not comparable, {', '.join(counts) or 'of another magnitude'}: {value_line(there)}"


def _times(count: int, name: str) -> str:
    return f"{count or 'no'} {name}{'' if count == 1 else 's'}"
