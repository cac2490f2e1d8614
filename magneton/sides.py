"""Profiles of one side or two: read from a file, or measured now.

In: ``NAME[:key=value,...]``, ``path.py:function`` or ``profile.mgn``, and settings. Two systems are measured
alternately in one session; a system against a file is measured with the file's settings, and apart from it.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from magneton.compare.comparability import check_origins
from magneton.envs.consent import Conversation
from magneton.envs.use import interpreters, variables_for
from magneton.errors import MagnetonError
from magneton.interventions import Intervention
from magneton.meters.devices import SUFFIX
from magneton.meters.registry import open_meter
from magneton.profile.continuation import continuation_of
from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo, Origin
from magneton.profile.output import Output, cannot_write, reserve
from magneton.profile.store import load, save_into
from magneton.profile.store import save as save_profile
from magneton.record.progress import Progress
from magneton.record.recovery import recover
from magneton.record.request import RecordRequest, intervened
from magneton.record.session import BASELINE, CANDIDATE, record, record_pair
from magneton.settings import AUTO, Settings, kind_of, like, plan_of, requests_for
from magneton.system import PROFILE_SUFFIX, RecordedProfile, SystemSpec, describe, parse_system

Side = SystemSpec | RecordedProfile
SILENT = Conversation()


@contextmanager
def ready_requests(
    requests: Sequence[RecordRequest], settings: Settings, conversation: Conversation, progress: Progress
) -> Generator[Sequence[RecordRequest], None, None]:
    """``requests`` with the interpreter of each, made where it was missing, and kept while the block runs."""
    systems = {request.system: describe(request.system) for request in requests}
    kind = kind_of(requests[0].device)
    with interpreters(systems, kind, settings.python, conversation, progress) as pythons:
        yield [_placed(request, pythons[request.system]) for request in requests]


def _placed(request: RecordRequest, python: Path) -> RecordRequest:
    return replace(request, python=python, environment={**request.environment, **variables_for(python)})


def record_system(
    system: str,
    settings: Settings,
    progress: Progress,
    *,
    output: Path,
    conversation: Conversation = SILENT,
) -> Profile:
    """Run one system, measure it, and keep its profile at ``output``, which is reserved beforehand."""
    spec = parse_system(system)
    if isinstance(spec, RecordedProfile):
        raise MagnetonError(
            f"{spec.path} is a profile, recorded before", hint=f"look at it with: magneton show {spec.path}"
        )
    with reserve(output) as place:
        profile = _run(requests_for([spec], settings)[0], settings, progress, conversation)
        save_into(place, profile)
    return profile


def obtain(
    system: str, settings: Settings, progress: Progress, *, conversation: Conversation = SILENT
) -> Profile:
    """The profile of one side: read from a file, or measured now."""
    match parse_system(system):
        case RecordedProfile(path=path):
            return load(path)
        case spec:
            return _run(requests_for([spec], settings)[0], settings, progress, conversation)


def systems_to_run(*sides: str) -> Sequence[SystemSpec]:
    """The sides, none of which may be a recorded profile."""
    specs: list[SystemSpec] = []
    for side in map(parse_system, sides):
        if isinstance(side, RecordedProfile):
            hint = "name the system that was recorded, or compare without confirming causes"
            raise MagnetonError(f"{side.path} is a recorded profile and cannot be run again", hint=hint)
        specs.append(side)
    return specs


@contextmanager
def rerunning(
    baseline: str, candidate: str, settings: Settings, progress: Progress, conversation: Conversation = SILENT
) -> Generator[Callable[[Literal["baseline", "candidate"], Sequence[Intervention]], tuple[Profile, Profile]]]:
    """What records one side as it is and under interventions, in turns, as often as asked."""
    specs = systems_to_run(baseline, candidate)
    with ready_requests(requests_for(specs, settings), settings, conversation, progress) as requests:
        by_side = dict(zip((BASELINE, CANDIDATE), requests, strict=True))

        def rerun(
            side: Literal["baseline", "candidate"], interventions: Sequence[Intervention]
        ) -> tuple[Profile, Profile]:
            asked = by_side[side]
            return record_pair(asked, intervened(asked, interventions), plan_of(settings), progress)

        yield rerun


def obtain_pair(
    baseline: str,
    candidate: str,
    settings: Settings,
    progress: Progress,
    *,
    save: Path | None = None,
    conversation: Conversation = SILENT,
) -> tuple[Profile, Profile]:
    """The profiles of both sides; with ``save``, kept in that folder as baseline.mgn and candidate.mgn."""
    sides = parse_system(baseline), parse_system(candidate)
    if save is None:
        return _obtain(*sides, settings, progress, conversation)
    with _folder(save) as places:
        profiles = _obtain(*sides, settings, progress, conversation)
        for place, profile in zip(places, profiles, strict=True):
            save_into(place, profile)
    return profiles


def recover_sides(folder: Path, *, save: Path) -> tuple[Path, ...]:
    """Keep what a recording had measured before it failed or was stopped; returns where each profile lies."""
    profiles = recover(folder)
    _make(save)
    for name, profile in profiles.items():
        save_profile(profile, save / f"{name}{PROFILE_SUFFIX}")
    return tuple(save / f"{name}{PROFILE_SUFFIX}" for name in profiles)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


@contextmanager
def _folder(folder: Path) -> Generator[tuple[Output, Output], None, None]:
    """Places for both profiles, made sure of before anything is measured."""
    _make(folder)
    with (
        reserve(folder / f"{BASELINE}{PROFILE_SUFFIX}") as baseline,
        reserve(folder / f"{CANDIDATE}{PROFILE_SUFFIX}") as candidate,
    ):
        yield baseline, candidate


def _obtain(
    baseline: Side, candidate: Side, settings: Settings, progress: Progress, conversation: Conversation
) -> tuple[Profile, Profile]:
    match baseline, candidate:
        case SystemSpec(), SystemSpec():
            requests = requests_for([baseline, candidate], settings)
            with ready_requests(requests, settings, conversation, progress) as (one, other):
                return record_pair(one, other, plan_of(settings), progress)
        case RecordedProfile(), RecordedProfile():
            return load(baseline.path), load(candidate.path)
        case RecordedProfile(), SystemSpec():
            profile = load(baseline.path)
            request = _request_like(profile, candidate, settings)
            check_origins(profile.origin, _expected(request, profile.origin))
            return profile, _run(request, settings, progress, conversation)
        case SystemSpec(), RecordedProfile():
            profile = load(candidate.path)
            request = _request_like(profile, baseline, settings)
            check_origins(_expected(request, profile.origin), profile.origin)
            return _run(request, settings, progress, conversation), profile


def _run(
    request: RecordRequest, settings: Settings, progress: Progress, conversation: Conversation
) -> Profile:
    with ready_requests([request], settings, conversation, progress) as (ready,):
        return record(ready, plan_of(settings), progress)


def _request_like(profile: Profile, spec: SystemSpec, settings: Settings) -> RecordRequest:
    """Of what was recorded, also the tokens that its decode steps were fed."""
    (request,) = requests_for([spec], like(settings, profile.origin))
    same = request.workload == profile.origin.workload
    return replace(request, continuation=continuation_of(profile) if same else None)


def _expected(request: RecordRequest, other: Origin) -> Origin:
    """The origin that a recording will have, as far as it is known; the rest as on the other side."""
    return replace(
        other,
        model=request.model,
        config_hash=request.config_hash,
        workload=request.workload,
        meter=_expected_meter(request.meter, other.meter),
        threads=request.threads,
        device_kind="cpu" if request.device == "cpu" else "cuda",
    )


def _expected_meter(asked: str, recorded: MeterInfo) -> MeterInfo:
    """A device file says all that its meter will say of itself; other meters are known by their names."""
    if asked in (AUTO, recorded.name) or recorded.name.startswith(f"{asked}:"):
        return recorded
    if recorded.device is not None and asked.endswith(SUFFIX):
        return open_meter(asked, "cpu").info()
    return replace(recorded, name=asked)
