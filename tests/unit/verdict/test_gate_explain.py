"""What is said to have changed, from hand-made rows; GPU kernels by family."""

import dataclasses

import pytest

from pipeprof.report.words.comparison import headline, worded
from pipeprof.verdict.gate.explain import explanation, family
from pipeprof.verdict.gate.judge import judge
from pipeprof.verdict.gate.result import MetricVerdict, Verdict


def metric(name, verdict, kind="primary", ratio=1.5, **more):
    facts = {
        "unit": "ns", "direction": "lower", "base": 10.0, "new": 15.0, "ci_low": 1.4, "ci_high": 1.6, "p_value": 1e-5,
        "alpha": 0.002, "min_effect": 0.02, "reps_base": 5, "reps_new": 5,
    }  # fmt: skip
    return MetricVerdict(name, family=kind, verdict=verdict, ratio=ratio, **(facts | more))


def verdict_of(levels, word="regressed", ratio=1.5, primary="step_time_median"):
    """`levels`: secondary metrics as (base, new) or (base, new, verdict); None where one is not there."""
    made = [metric(primary, word, ratio=ratio)]
    for name, (base, new, *said) in levels.items():
        times = new / base if base and new is not None else None
        made.append(metric(name, *(said or ["inconclusive"]), "secondary", ratio=times, base=base, new=new))
    return Verdict(word, tuple(made))


def explained(levels, appeared=(), facts=(), **more):
    verdict = verdict_of(levels, **more)
    entries = explanation(verdict, dict(appeared), facts)
    return entries, headline(verdict, entries)


def came(*names):
    return [{"name": f"op {name}", "base": None, "new": "kernel", "change": "appeared"} for name in names]


def went(*names):
    return [{"name": f"op {name}", "base": "kernel", "new": None, "change": "vanished"} for name in names]


GREW, SAME = "regressed", "unchanged"


@pytest.mark.parametrize(("levels", "expected"), [
    (  # a stage that grew is the cause when the loop waits for data
        {"phase/data_wait": (2e6, 6e6, GREW), "phase/compute": (8e6, 8e6, SAME),
         "pipeline/decode": (10e6, 21e6, GREW), "pipeline/batch": (1e6, 1e6, SAME)},
        [("pipeline_op", "decode", None), ("phase", "data_wait", 1.0)],
    ),
    (  # and is not named for a step that does not wait for it
        {"phase/data_wait": (1e6, 1e6), "phase/compute": (40e6, 90e6, GREW), "pipeline/decode": (20e6, 30e6)},
        [("phase", "compute", 1.0)],
    ),
    (  # phases of windows and of all steps are no two steps
        {"phase/compute": (10e6, 16e6, GREW), "phase/data_wait": (2e6, 6e6, GREW),
         "phase/forward_backward": (8e6, 13e6), "phase/tail": (2e6, 3e6)},
        [("phase", "compute", 0.6), ("phase", "forward_backward", 0.5), ("phase", "data_wait", 0.4),
         ("phase", "tail", 0.1)],
    ),
    (  # sides whose phases differ have no shares
        {"phase/data_wait": (1e6, 9e6, GREW), "phase/compute": (8e6, None, "missing")},
        [("phase", "data_wait", None)],
    ),
    (  # lines are sorted by their share of the change, below the cause
        {"phase/compute": (10e6, 30e6, GREW), "phase/data_wait": (1e6, 1e6), "op/small": (1e6, 4e6, GREW),
         "op/large": (2e6, 12e6, GREW), "op/less": (5e6, 1e6, "improved")},
        [("operator", "large", 0.5), ("phase", "compute", 1.0), ("operator", "less", -0.2),
         ("operator", "small", 0.15)],
    ),
])  # fmt: skip
def test_what_changed_and_how_much_of_the_step_it_is(levels, expected):
    found = [(entry["kind"], entry["name"], entry["share"]) for entry in explained(levels)[0]]
    assert found == [(kind, name, share and pytest.approx(share)) for kind, name, share in expected]


@pytest.mark.parametrize(("name", "said"), [("peak_memory", "peak memory"), ("first_step_time", "time to first step")])
def test_parts_of_a_step_are_no_cause_of_what_is_no_step_time(name, said):
    _, text = explained({"op/Relu": (10e6, 12e6, GREW)}, primary=name)
    assert text == f"Regressed: {said} +50.0 % (95 % interval +40.0 to +60.0 %)"


def test_what_no_test_of_its_own_proves_or_became_another_one_is_the_headline():
    entries, said = explained({
        "phase/data_wait": (100e6, 280e6), "phase/compute": (40e6, 45e6), "pipeline/Rows": (1e6, 3e6),
        "pipeline/decode": (120e6, 300e6), "pipeline/BatchOp": (2e6, 1e6),
    })  # fmt: skip
    assert [entry["name"] for entry in entries] == ["decode", "data_wait"]
    assert worded(entries)[0]["text"] == "work of `decode` per batch may have grown to 2.5x"
    assert said.endswith(", probably because work of `decode` per batch grew to 2.5x")
    levels = {"phase/compute": (10e6, 15e6, GREW), "phase/data_wait": (1e6, 1e6), "op/net/conv": (3e6, 8e6, GREW),
              "op/net/relu": (1e6, 1.4e6, GREW)}  # fmt: skip
    fact = {"name": "op net/conv", "base": "Conv2D", "new": "slow_conv2d", "change": "changed"}
    entries, said = explained(levels, facts=[fact])
    assert (entries[0]["kind"], entries[0]["share"]) == ("structure", 1.0)
    assert said.endswith("because operator `net/conv` changed from Conv2D to slow_conv2d")
    fact = {"name": "stage decode", "base": "MapOp, workers 4", "new": "MapOp, workers 1", "change": "changed"}
    _, said = explained({"phase/data_wait": (1e6, 9e6), "phase/compute": (8e6, 8e6)}, facts=[fact])
    assert "because stage `decode` changed from MapOp, workers 4 to MapOp, workers 1" in said


def test_noise_is_not_explained_and_what_is_open_has_no_cause():
    assert explained({"phase/compute": (10e6, 10.4e6), "op/net/conv": (3e6, 3.9e6)}, word=SAME, ratio=1.0)[0] == []
    levels = {"phase/data_wait": (2e6, 9e6), "phase/compute": (8e6, 8e6), "pipeline/decode": (8e6, 20e6)}
    entries, said = explained(levels, word="inconclusive")
    assert "because" not in said
    assert all(" may have " in entry["text"] for entry in worded(entries))


@pytest.mark.parametrize(("new", "share"), [(None, -0.3), ("Mul", 0.2)])
def test_operators_that_come_and_go(new, share):
    levels = {"phase/whole": (10e6, 20e6)} | ({} if new else {"op/x": (3e6, None, "missing")})
    (entry,) = worded(explained(levels, {"op/x": 2e6} if new else {}, came("x") if new else went("x"))[0])
    assert entry["share"] == pytest.approx(share)
    assert entry["change"] in entry["what"]


def test_a_headline_without_a_cause():
    assert headline(Verdict("missing", ()), []) == "Missing: no primary metric could be judged"
    verdict = judge({"data_wait": (0.0,) * 5}, {"data_wait": (5e6,) * 5})
    assert headline(verdict, []).startswith("Regressed: waiting for data 0 ns -> 5.00 ms: a value is 0 or less")
    one = metric("step_time_median", "inconclusive", ratio=1.02, ci_low=0.9, ci_high=1.2)
    other = metric("peak_memory", "inconclusive", ratio=1.02, reps_needed=77)
    open_ = Verdict("inconclusive", (dataclasses.replace(one, reps_needed=12, reps_find=0.05), other))
    assert headline(open_, []) == (
        "Inconclusive: step time +2.0 % (95 % interval -10.0 to +20.0 %); about 12 repetitions per side "
        "would probably show a change of 5 %"
    )
    assert headline(Verdict("inconclusive", (one, other)), []).endswith("+20.0 %)")


def test_kernels_of_a_family_add_up_and_those_of_another_version_are_one_line_and_no_cause():
    names = [f"void f<{number}, float>(int)" for number in range(4)]
    levels = {"phase/whole": (50e6, 91e6)} | {f"op/{name}": (5e6, None, "missing") for name in names[:2]}
    copies = "Memcpy DtoD (Device -> Device)"
    levels |= {f"op/{copies}": (1e6, 41e6), f"count/{copies}": (3.0, 774.0)}
    facts = [*went(*names[:2]), *came(*names[2:])]
    (first, *rest), _ = explained(levels, {f"op/{name}": 5.2e6 for name in names[2:]}, facts)
    assert (first["name"], first["share"]) == (copies, pytest.approx(40 / 41))
    assert worded([first])[0]["text"] == "operator `Memcpy DtoD` (3 -> 774 executions per step) may have grown to 41x"
    assert {(entry["kind"], entry["family"], entry["share"]) for entry in rest} == {("structure", "f", None)}
    old, new = ("void f<1>(int)", "void f<2>(int)"), "void f<3>(int)"
    levels = {"phase/whole": (50e6, 70e6)} | {f"op/{name}": (2e6, None, "missing") for name in old}
    first = explained(levels, {f"op/{new}": 24e6}, [*went(*old), *came(new)])[0][0]
    assert (first["name"], first["members"], first["base"], first["new"]) == ("f", 3, 4e6, 24e6)
    assert (first["ratio"], first["share"]) == (6.0, 1.0)


@pytest.mark.parametrize(("name", "kernels"), [
    ("void at::native::reduce_kernel<512, 1, at::native::Sum<float>::operator()(int)>(int)", "reduce_kernel"),
    ("void at::native::(anonymous namespace)::norm_kernel<float>(float*)", "norm_kernel"),
    ("void cutlass::Kernel<cutlass_80_tensorop_gemm_64x64_32x6_tn_align4>(int)", "cutlass_tensorop_gemm"),
    ("cutlass_75_tensorop_gemm_256x128_16x3_nt_align1", "cutlass_tensorop_gemm"),
    ("ampere_sgemm_128x64_nn", "ampere_sgemm"),
    ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_stage3_kernel", "sm80_xmma_gemm"),
    ("triton_poi_fused_add_mul_12", "triton_poi_fused_add_mul"), ("fused_softmax_1f3a9c0e", "fused_softmax"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "nccl AllReduce"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "nccl AllReduce"),
    ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"), ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD"),
    ("Memset (Device)", "Memset"),
])  # fmt: skip
def test_kernels_of_one_kind_have_one_family(name, kernels):
    assert family(name) == kernels


@pytest.mark.parametrize("name", [
    "Default/network/conv1/Conv2D", "Default/net_64x64/MatMul", "aten::add", "MatMul", "(others)", "Conv2D_20261122",
    "autograd::engine::evaluate_function: AddmmBackward0", "Optimizer.step#SGD.step", "",
])  # fmt: skip
def test_operators_keep_their_names(name):
    assert family(name) == name
