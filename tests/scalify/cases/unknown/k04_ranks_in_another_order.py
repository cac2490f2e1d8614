"""What ranks hold is put together along the mesh's axes in the wrong order."""

from dataclasses import replace

from scalify_cases import load_pair, sharded

PAIR = replace(
    load_pair("proved/c11_replicated_key_heads"), verdict="unknown", outputs={"y": sharded(0, "copy", "kv")}
)
