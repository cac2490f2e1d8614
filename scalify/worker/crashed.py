"""A bug of ours, in another process."""


class ProverCrashed(RuntimeError):
    """The worker died of an error of ours; the message holds its traceback."""
