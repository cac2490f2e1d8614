"""A program of its own: StableHLO from standard input, as text or bytecode, to MLIR's own print of it.

It runs apart because MLIR's parser is native code: what a hostile file could make it do (run out of stack,
abort) ends this process and no other. It imports nothing of scalify, so that it starts quickly.
"""

import resource
import sys
from typing import Any

MEMORY_BYTES = 8 * 2**30
CPU_S = 120
FAILED = 3


def main() -> int:
    """Parse, print, and say on standard error what is wrong."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = dialects()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    data = sys.stdin.buffer.read()
    try:
        if data.startswith(b"ML\xefR"):
            module = stablehlo.deserialize_portable_artifact(context, data)
        else:
            module = ir.Module.parse(data.decode(), context)
    except (ir.MLIRError, ValueError) as error:
        sys.stderr.write(str(error))
        return FAILED
    sys.stdout.write(str(module.operation.get_asm(enable_debug_info=True)))
    return 0


def dialects() -> Any:
    """MLIR's context with the dialects that JAX writes."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, chlo, stablehlo):
        dialect.register_dialect(context)
    return context


if __name__ == "__main__":
    sys.exit(main())
