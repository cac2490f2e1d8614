"""Archives written by torch.export, read as zip and JSON: PyTorch is not imported, nothing is executed."""

from scalify.load.torch_export.read import read

__all__ = ["read"]
