"""GPU kernels by family: what another version of a library, another tile or another hash changes is left out."""

import pytest

from pipeprof.verdict.gate.explain import family


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::Sum<float>::operator()(int)>(int)", "reduce_kernel"),
        ("void at::native::(anonymous namespace)::norm_kernel<float>(float*)", "norm_kernel"),
        ("void cutlass::Kernel<cutlass_80_tensorop_gemm_64x64_32x6_tn_align4>(int)", "cutlass_tensorop_gemm"),
        ("cutlass_75_tensorop_gemm_256x128_16x3_nt_align1", "cutlass_tensorop_gemm"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_stage3_kernel", "sm80_xmma_gemm"),
        ("triton_poi_fused_add_mul_12", "triton_poi_fused_add_mul"),
        ("fused_softmax_1f3a9c0e", "fused_softmax"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "nccl AllReduce"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "nccl AllReduce"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD"),
        ("Memset (Device)", "Memset"),
    ],
)
def test_kernels_of_one_kind_have_one_family(name, kernels):
    assert family(name) == kernels


@pytest.mark.parametrize(
    "name",
    ["Default/network/conv1/Conv2D", "Default/net_64x64/MatMul", "aten::add", "MatMul", "(others)", "Conv2D_20261122",
     "autograd::engine::evaluate_function: AddmmBackward0", "Optimizer.step#SGD.step", ""],
)  # fmt: skip
def test_operators_keep_their_names(name):
    assert family(name) == name
