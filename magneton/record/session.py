"""One or two systems and a plan in, one or two profiles out.

When a recording fails or is stopped no process is left, and what the workers had written stays where the
error says. When it succeeds the profiles are all that remains.
"""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from magneton.errors import Interrupted, MagnetonError, WorkerFailed, WorkerOutOfMemory
from magneton.profile.model import Doubt, Profile
from magneton.record.assemble import read_journal
from magneton.record.plan import RecordPlan
from magneton.record.progress import NoProgress, Progress
from magneton.record.recording import Recording
from magneton.record.request import RecordRequest
from magneton.record.runs import run_folder

DEFAULT_PLAN = RecordPlan()
SILENT = NoProgress()


class _CrowdedError(Exception):
    """Both at once are too much for the memory; each alone may not be."""


def record(request: RecordRequest, plan: RecordPlan = DEFAULT_PLAN, progress: Progress = SILENT) -> Profile:
    """Measure one system."""
    (profile,) = _record((request,), plan, progress)
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
    requests = (baseline_request, candidate_request)
    if not sequential:
        try:
            baseline, candidate = _record(requests, plan, progress)
        except _CrowdedError:
            progress.update(0, 1, "both systems do not fit at once: recording one after the other")
        else:
            return baseline, candidate
    doubt = Doubt(
        kind="recorded-apart",
        text="the sides were recorded one after the other: drift in between is part of the difference",
    )
    first, second = (record(request, plan, progress) for request in requests)
    return _doubted(first, doubt), _doubted(second, doubt)


def recorded(error: WorkerFailed | Interrupted) -> tuple[Profile, ...]:
    """What had been measured of sides whose trace was complete when a recording failed or was stopped."""
    return tuple(read_journal(folder) for folder in error.journals)


def _doubted(profile: Profile, doubt: Doubt) -> Profile:
    return replace(profile, doubts=(*profile.doubts, doubt))


def _record(requests: Sequence[RecordRequest], plan: RecordPlan, progress: Progress) -> tuple[Profile, ...]:
    with run_folder() as folder, ExitStack() as workers:
        recording = Recording(plan, progress, folder)
        try:
            for request in requests:
                workers.enter_context(recording.start(request))
            recording.set_up()
            recording.measure()
            return recording.finish()
        except KeyboardInterrupt:
            raise _stopped(recording) from None
        except WorkerFailed as error:
            if isinstance(error, WorkerOutOfMemory) and recording.crowded():
                shutil.rmtree(folder)
                raise _CrowdedError from error
            _tell_journals(error, recording)
            raise
        except MagnetonError:
            if not recording.journals():
                shutil.rmtree(folder)
            raise


def _stopped(recording: Recording) -> Interrupted:
    what = "what had been measured lies" if recording.journals() else "nothing had been measured; logs lie"
    error = Interrupted("the recording was stopped", hint=f"{what} in {recording.folder}")
    error.journals = recording.journals()
    return error


def _tell_journals(error: WorkerFailed, recording: Recording) -> None:
    error.journals = recording.journals()
    if error.journals:
        error.hint += f"\nwhat had been measured: {recording.folder}"
