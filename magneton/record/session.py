"""One or two systems and a plan in, one or two profiles out.

When a recording fails or is stopped no process is left, and what the workers had written stays where the
error says. When it succeeds the profiles are all that remains.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from magneton.errors import Interrupted, MagnetonError, WorkerFailed, WorkerOutOfMemory
from magneton.profile.continuation import continuation_of
from magneton.profile.model import Doubt, Profile
from magneton.record.assemble import read_journal
from magneton.record.plan import RecordPlan
from magneton.record.progress import NoProgress, Progress
from magneton.record.recording import Recording
from magneton.record.request import RecordRequest
from magneton.record.runs import run_folder

DEFAULT_PLAN = RecordPlan()
SILENT = NoProgress()
BASELINE, CANDIDATE = "baseline", "candidate"  # also the names of the folders


class _CrowdedError(Exception):
    """Both at once are too much for the memory; each alone may not be."""


def record(request: RecordRequest, plan: RecordPlan = DEFAULT_PLAN, progress: Progress = SILENT) -> Profile:
    """Measure one system."""
    with run_folder() as folder:
        (profile,) = _measure({BASELINE: request}, Recording(plan, progress, folder))
    return profile


def record_pair(
    baseline_request: RecordRequest,
    candidate_request: RecordRequest,
    plan: RecordPlan = DEFAULT_PLAN,
    progress: Progress = SILENT,
    *,
    sequential: bool = False,
) -> tuple[Profile, Profile]:
    """Measure two systems in turns; one after the other if they do not fit at once or ``sequential``."""
    requests = {BASELINE: baseline_request, CANDIDATE: candidate_request}
    with run_folder() as folder:
        if not sequential:
            try:
                baseline, candidate = _measure(requests, Recording(plan, progress, folder))
            except _CrowdedError:
                progress.update(0, 1, "both systems do not fit at once: recording one after the other")
            else:
                return baseline, candidate
        return _measure_apart(requests, plan, progress, folder)


def recorded(error: WorkerFailed | Interrupted) -> tuple[Profile, ...]:
    """What had been measured of sides whose trace was complete when a recording failed or was stopped."""
    return tuple(read_journal(folder) for folder in error.journals)


def _measure_apart(
    requests: Mapping[str, RecordRequest], plan: RecordPlan, progress: Progress, folder: Path
) -> tuple[Profile, Profile]:
    first = Recording(plan, progress, folder)
    (baseline,) = _measure({BASELINE: requests[BASELINE]}, first)
    second = Recording(plan, progress, folder, earlier=first.journals())
    request = replace(requests[CANDIDATE], continuation=continuation_of(baseline))
    (candidate,) = _measure({CANDIDATE: request}, second)
    return _recorded_apart(baseline), _recorded_apart(candidate)


def _recorded_apart(profile: Profile) -> Profile:
    text = "the sides were recorded one after the other: drift in between is part of the difference"
    return replace(profile, doubts=(*profile.doubts, Doubt(kind="recorded-apart", text=text)))


def _measure(requests: Mapping[str, RecordRequest], recording: Recording) -> tuple[Profile, ...]:
    """The whole recording of the named sides; whatever stops it, no process is left when this returns."""
    with ExitStack() as workers:
        try:
            for name, request in requests.items():
                workers.enter_context(recording.start(request, name))
            recording.set_up()
            recording.measure()
            return recording.finish()
        except KeyboardInterrupt:
            raise _stopped(recording) from None
        except WorkerFailed as error:
            if isinstance(error, WorkerOutOfMemory) and recording.crowded():
                recording.discard()
                raise _CrowdedError from error
            error.journals = recording.journals()
            _tell_what_was_measured(error, recording)
            raise
        except MagnetonError as error:
            if not recording.journals():
                recording.discard()
            _tell_what_was_measured(error, recording)
            raise


def _stopped(recording: Recording) -> Interrupted:
    journals = recording.journals()
    hint = _keep(recording) if journals else f"nothing had been measured; logs lie in {recording.folder}"
    error = Interrupted("the recording was stopped", hint=hint)
    error.journals = journals
    return error


def _tell_what_was_measured(error: MagnetonError, recording: Recording) -> None:
    if recording.journals():
        error.hint += f"\n{_keep(recording)}"


def _keep(recording: Recording) -> str:
    return f"to keep what had been measured: magneton recover {recording.folder} --save FOLDER"
