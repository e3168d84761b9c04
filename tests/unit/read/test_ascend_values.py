"""Which operators of a graph communicate."""

import pytest

from pipeprof.read.ascend.out import phase_of


@pytest.mark.parametrize(
    ("name", "kind", "phase"),
    [
        ("Default/network-Net/embedding-Embedding/Gather-op3", "Gather", "forward"),
        ("Default/network-Net/Scatter-op1", None, "forward"),
        ("Default/CollectiveGather-op0", "CollectiveGather", "communication"),
        ("Default/AllReduce-op12", "AllReduce", "communication"),
        ("hcom_gather__586_0_1", None, "communication"),
        ("Gradients/Default/network-Net/fc-Dense/gradMatMul/MatMul-op1", "MatMul", "backward"),
    ],
)
def test_what_gathers_within_a_device_does_not_communicate(name, kind, phase):
    assert phase_of(name, kind) == phase
