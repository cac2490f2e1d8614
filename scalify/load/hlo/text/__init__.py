"""HLO modules as XLA prints them: the same ``Module`` as from the serialized form."""

from scalify.load.hlo.text.reader import read_module_text

__all__ = ["read_module_text"]
