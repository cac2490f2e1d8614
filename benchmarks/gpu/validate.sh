#!/bin/sh
# Validates magneton's energy readings on this machine's NVIDIA GPU, in under five minutes, into one JSON file:
#
#     benchmarks/gpu/validate.sh [RESULT.json] [--python PYTHON] [--budget-s SECONDS] [--bench MODULE:CLASS]
#
# The file is RESULT.json, else $OUT/gpu-validation.json, else ./gpu-validation.json. It needs a Python (3.11 or
# later; --python, else $PYTHON, else python3) with torch, numpy and nvidia-ml-py. It installs nothing and changes
# nothing on the GPU.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
# The interpreter is ours to find; the other arguments are the script's.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case $argument in
    --python)
        if [ "$count" -eq 0 ]; then
            echo "error: --python needs a path" >&2
            exit 2
        fi
        python=$1
        shift
        count=$((count - 1))
        ;;
    --python=*) python=${argument#--python=} ;;
    *) set -- "$@" "$argument" ;;
    esac
done
if ! command -v "$python" >/dev/null 2>&1; then
    echo "error: there is no interpreter $python: give one with --python or PYTHON=" >&2
    exit 2
fi
PYTHONPATH="$here/..:$here/../..${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec "$python" -m gpu.validate "$@"
