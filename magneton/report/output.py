"""Any result to standard output, for people or for programs."""

import sys
from typing import Literal

from magneton.audit.model import Audit
from magneton.compare.model import Comparison
from magneton.envs.listed import ListedSystems, RemovedEnvironments, ShownSystem
from magneton.report.audit import audit_json, print_audit
from magneton.report.console import console_for
from magneton.report.explained import Explained
from magneton.report.explained_text import explanation_json, print_explained
from magneton.report.json import comparison_json
from magneton.report.matching import MatchingSummary
from magneton.report.matching_text import matching_json, print_matching
from magneton.report.profile import print_profile, profile_json
from magneton.report.summary import ProfileSummary
from magneton.report.systems import (
    print_removed,
    print_system,
    print_systems,
    removed_json,
    system_json,
    systems_json,
)
from magneton.report.text import print_comparison

Result = (
    Comparison
    | Audit
    | MatchingSummary
    | Explained
    | ProfileSummary
    | ListedSystems
    | ShownSystem
    | RemovedEnvironments
)


def print_result(result: Result, format: Literal["text", "json"], *, top: int = 10) -> None:
    """``top`` bounds what text lists; JSON always holds everything."""
    if format == "json":
        sys.stdout.write(as_json(result) + "\n")
        return
    console = console_for(sys.stdout)
    match result:
        case Comparison():
            print_comparison(result, console, top=top)
        case Audit():
            print_audit(result, console, top=top)
        case MatchingSummary():
            print_matching(result, console, top=top)
        case Explained():
            print_explained(result, console, top=top)
        case ProfileSummary():
            print_profile(result, console, top=top)
        case ListedSystems():
            print_systems(result, console)
        case ShownSystem():
            print_system(result, console)
        case RemovedEnvironments():
            print_removed(result, console)


def as_json(result: Result) -> str:
    match result:
        case Comparison():
            return comparison_json(result)
        case Audit():
            return audit_json(result)
        case MatchingSummary():
            return matching_json(result)
        case Explained():
            return explanation_json(result)
        case ProfileSummary():
            return profile_json(result)
        case ListedSystems():
            return systems_json(result)
        case ShownSystem():
            return system_json(result)
        case RemovedEnvironments():
            return removed_json(result)
