"""Four ranks share two key heads: neighbours hold different ones, but their queries belong to the same."""

from dataclasses import replace

from scalify_cases import load_pair, sharded

PAIR = replace(
    load_pair("proved/c11_replicated_key_heads"),
    verdict="unknown",
    inputs={"q": sharded(0), "k": sharded(0, "copy"), "v": sharded(0, "copy")},
)
