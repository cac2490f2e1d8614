"""What decode steps were fed, as a recording kept it among its outputs."""

import numpy as np

from magneton.errors import InvalidProfile
from magneton.profile.model import Profile
from magneton.workload import Continuation

FED = "decode.fed"


def continuation_of(profile: Profile) -> Continuation | None:
    """Token ids [decode_steps][batch]; None where nothing was decoded, or an older recording does not say."""
    fed = profile.outputs.get(FED)
    if fed is None:
        return None
    work = profile.origin.workload
    if fed.dtype != np.int64 or fed.shape != (work.decode_steps, work.batch) or fed.min(initial=0) < 0:
        raise InvalidProfile(
            f"the tokens that decode was fed are {fed.dtype} {fed.shape}, not those of its workload",
            hint="record it again",
        )
    return tuple(tuple(row) for row in fed.tolist())
