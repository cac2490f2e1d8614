"""B68 as it should be: the head of the last stage holds the embedding."""

from dataclasses import replace

from scalify_cases import load_pair, replicated, replicated_of

PAIR = replace(
    load_pair("unknown/b68_head_uninitialised"),
    verdict="proved",
    inputs={"hidden": replicated, "head": replicated_of("embedding")},
)
