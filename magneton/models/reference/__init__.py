"""Plain PyTorch models of ours: what the `torch` system runs, and what a reader can check by eye.

They load the same safetensors as everybody else and keep the checkpoint's names of modules.
"""
