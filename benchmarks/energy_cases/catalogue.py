"""The corpus, and what of the known cases is not in it."""

from energy_cases.case import Absent
from energy_cases.planted import PLANTED
from energy_cases.spared import SPARED

CASES = (*PLANTED, *SPARED)

ABSENT = (
    Absent(
        report="c1: vllm-9471",
        mechanism="prefill attention without tensor cores",
        reason="FlashInfer needs an NVIDIA GPU",
    ),
    Absent(
        report="c2: vllm-10811",
        mechanism="decode attention copies its data",
        reason="the copy is in a CUDA backend; copied_cache is near to it",
    ),
    Absent(
        report="c5: hf-14450",
        mechanism="default formats cause conversions",
        reason="TF32 needs an NVIDIA GPU; forced_contiguous is near to it",
    ),
    Absent(report="c8: sd-279", mechanism="linear layers without TF32", reason="TF32 needs an NVIDIA GPU"),
    Absent(
        report="c9: pytorch-181115",
        mechanism="a finished rank stays busy in collectives",
        reason="needs several ranks, each of which is measured",
    ),
    Absent(
        report="c10: pytorch-141210",
        mechanism="addmm picks a costlier kernel than mm and add",
        reason="cuBLAS picks it; on a processor addmm is no costlier",
    ),
    Absent(
        report="c11: pytorch-28224",
        mechanism="a host spins while it waits for its device",
        reason="needs a device to wait for",
    ),
    Absent(
        report="c13: pytorch-141822",
        mechanism="the cross entropy by its call or by its parts",
        reason="on a processor the call is the lean one",
    ),
    Absent(report="c15: jax-9239", mechanism="expm computes every Pade order", reason="no adapter for JAX"),
    Absent(
        report="c16: tf-60772", mechanism="count_nonzero casts its input", reason="no adapter for TensorFlow"
    ),
    Absent(report="jax-29875", mechanism="grouped convolutions", reason="no adapter for JAX"),
    Absent(
        report="pytorch-153195",
        mechanism="default precision of matrix products",
        reason="TF32 needs an NVIDIA GPU",
    ),
    Absent(
        report="vllm-20174",
        mechanism="default attention of prefill",
        reason="needs an NVIDIA GPU; eager_attention is near to it",
    ),
    Absent(report="tf-96396", mechanism="convolution kernels of its own", reason="no adapter for TensorFlow"),
    Absent(report="jax #5328", mechanism="a permutation by sorts", reason="no adapter for JAX"),
    Absent(
        report="tensorflow #40261",
        mechanism="predict against call",
        reason="no adapter for TensorFlow; sample_by_sample is near to it",
    ),
)
