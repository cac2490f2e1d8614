"""What the adapters of serving engines have in common."""

from importlib import import_module

from torch import nn

UNUSED_TOKENS = 2  # of a request: one that the last step chooses, one so that no step is a request's last

# What an engine does around its model, in the words of its table of scopes.
INTAKE = "request intake"
LOOP = "engine loop"
SCHEDULING = "scheduling"
PREPARATION = "input preparation"
FORWARD = "model forward"
SAMPLING = "sampling"
OUTPUT = "output processing"
TEXT = "detokenisation"
STATISTICS = "statistics"


def logits_module(model: nn.Module, home: str) -> nn.Module:
    """The module that makes the logits: models of an engine have one of the class that ``home`` defines."""
    kind = import_module(home).LogitsProcessor
    return next(module for module in model.modules() if isinstance(module, kind))
