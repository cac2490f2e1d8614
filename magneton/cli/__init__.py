"""The command line: parse, call one function, render. Nothing heavy is imported before a command runs."""

from magneton.cli.app import app, main

__all__ = ["app", "main"]
