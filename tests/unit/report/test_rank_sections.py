"""What the report says of ranks, communication, pipeline stages, queues, and operators known only in sum."""

import io
import json
import random
from copy import deepcopy

import pytest
from rich.console import Console

from pipeprof.read.foreign import import_path
from pipeprof.report import html, json_text, markdown, terminal
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import sections
from tests.unit.report.conftest import MS, trained

STEPS, RANKS, SLOW = 30, range(4), 2
DIVIDED = "Steps, as their profiler divides them"
ACROSS = "Stragglers and waits between ranks"
QUEUES = "Queues between host and device"


def works(chance, spread, extra_ms):
    return [int(chance.gauss(60, spread) * MS) + (extra_ms * MS if rank == SLOW else 0) for rank in RANKS]


def trace(extra_ms=8):
    """A step trace of ranks in lockstep: work up to BP, then an all-reduce in the tail; one rank works longer."""
    chance = random.Random(3)  # noqa: S311 - test data
    tables = {"step": [], "collective": []}
    clock = 0
    for number in range(STEPS):
        work = works(chance, 0.5, extra_ms)
        end = clock + 4 * MS + max(work) + 10 * MS
        for rank in RANKS:
            fp, bp = clock + 2 * MS, clock + 2 * MS + work[rank]
            here = {"rank": rank, "step": number}
            tables["step"].append(here | {
                "kind_step": number, "kind": "train" if number else "warmup", "start_ns": clock, "fp_ns": fp,
                "bp_ns": bp, "end_ns": end, "data_wait_ns": 2 * MS, "fp_source": "op", "in_window": False,
            })  # fmt: skip
            tables["collective"].append(here | {
                "name": "Default/grad_reducer/AllReduce-op1", "kind": "all_reduce", "track": "stream 3", "start_ns": bp,
                "dur_ns": end - bp - MS,
            })  # fmt: skip
        clock = end
    return tables


def stages():
    """Two pipeline stages of two ranks in one step, the second with bubbles; links, one of them slow."""
    common = {"source": "cluster_step_trace", "source_step": 2, "overlapped_ns": 5 * MS, "free_ns": 20 * MS}
    split = [
        {**common, "rank": rank, "computing_ns": (50 + rank) * MS, "exposed_ns": 30 * MS, "stage_ns": 100 * MS,
         "bubble_ns": 0 if rank < 2 else 40 * MS, "exposed_without_receive_ns": 30 * MS if rank < 2 else 5 * MS}
        for rank in RANKS
    ]  # fmt: skip
    split += [{**common, "rank": first, "stage_index": index} for index, first in enumerate((0, 2))]
    links = [
        {"rank": 0, "name": f"op{number}", "src_rank": src, "dst_rank": dst, "transport": "HCCS", "bytes": 1 << 20,
         "dur_ns": 400_000 if (src, dst) == (1, 2) else 100_000}
        for number in range(20) for src, dst in ((0, 1), (1, 2), (2, 3), (3, 0))
    ]  # fmt: skip
    return {"step_split": split, "rank_link": links}


def totals():
    rows = [("aicore_type", "AI_CORE", "MatMul", 9, 9), ("aicore_type", "AI_CORE", "Cast", 1, 1),
            ("aicore_detail", "AI_CORE", "MatMul", 9, 9), ("aicpu", "AI_CPU", "GetNext", 2, 4)]  # fmt: skip
    found = [
        {"source": source, "device": device, "type": kind, "count": n, "total_ns": ms * MS, "mean_ns": ms * MS // n}
        for source, device, kind, n, ms in rows
    ]
    found[2]["name"] = "Default/net/MatMul-op1"
    return {"op_total": found}


def sink(host_depth, device_depth):
    fetch = [
        {"pipeline_id": 0, "fetch": n, "start_ns": n * 10 * MS, "wait_ns": MS, "push_ns": MS, "side": side,
         "depth": depth, "capacity": 8}
        for n in range(40) for side, depth in (("host_queue", host_depth), ("data_queue", device_depth))
    ]  # fmt: skip
    steps = trained(*[10 * MS] * 40, pipeline_id=0, fetch_wait_ns=6 * MS)
    steps = [row | {"fp_ns": row["start_ns"] + 6 * MS} for row in steps]
    return {"fetch": fetch, "step": steps, "pipeline": [{"pipeline_id": 0, "pipeline_key": "a", "role": "train"}]}


@pytest.fixture
def report(make_run):
    """`report(tables)`: what is built of an import of them."""
    return lambda tables, **how: build(make_run(tables, source="import:ascend", state="complete"), **how)


def section(content, title):
    return next((found for found in sections(content) if found.title == title), None)


def cells(found, head):
    block = next(block for block in found.blocks if block.head[0] == head)
    return [dict(zip(block.head, row, strict=True)) for row in block.rows]


def test_the_straggler_is_named_first_with_its_evidence(report):
    content = report(trace())
    found = content["ranks"]["straggler"]
    (item,) = found["found"]
    assert (found["verdict"], item["rank"], item["phase"]) == ("straggler", SLOW, "forward_backward")
    assert [item[name] for name in ("excess_ns", "wait_caused_ns")] == pytest.approx([8 * MS] * 2, rel=0.1)
    assert item["collective"] == "Default/grad_reducer/AllReduce-op1"
    assert {part["source"] for part in item["evidence"]} == {"rank/phase_diff", "rank/last_arrival"}
    said = [text for part in sections(content) for text in part.strong]
    assert sum(text.startswith(f"Rank {SLOW} is a straggler: ") for text in said) == 1  # and not again further down
    assert sum(point["steps"] for point in content["steps"]["curve"]) == STEPS
    assert len({(row["phase"], row["point"]) for row in content["ranks"]["curve"]}) == len(content["ranks"]["curve"])
    diagnosis = content["diagnosis"]  # a short wait in front of the forward pass clears the data
    assert (diagnosis["verdict"], diagnosis["confidence"]) == ("consumer_bound", "medium")
    assert diagnosis["data_wait_share"] == pytest.approx(0.025, abs=0.003)


def test_a_straggler_is_sized_right_when_communication_overlaps(report):
    """Gradients are reduced beside the backward pass, bucket by bucket; every bucket waits for its slowest rank.

    So waits count again and again, but the step is late only once.
    """
    chance = random.Random(4)  # noqa: S311 - test data
    tables = {"step": [], "collective": []}
    clock = 0
    for number in range(STEPS):
        work = works(chance, 0.3, 5)
        reached = clock
        for bucket in range(1, 11):
            ready = [clock + own * bucket // 10 for own in work]
            begin, reached = reached, max(reached, *ready) + MS // 10
            tables["collective"] += [
                {"rank": rank, "step": number, "name": f"AllReduce-op{bucket}", "kind": "all_reduce", "track": "s 3",
                 "start_ns": max(ready[rank], begin), "dur_ns": reached - max(ready[rank], begin)} for rank in RANKS
            ]  # fmt: skip
        tables["step"] += [
            {"rank": rank, "step": number, "kind_step": number, "kind": "train", "start_ns": clock, "fp_ns": clock,
             "bp_ns": clock + own, "end_ns": reached + MS, "fp_source": "op", "in_window": False}
            for rank, own in enumerate(work)
        ]  # fmt: skip
        clock = reached + MS
    item = report(tables)["ranks"]["straggler"]["found"][0]
    assert (item["rank"], item["measure"]) == (SLOW, "until_bp")
    assert item["excess_ns"] == pytest.approx(5 * MS, rel=0.1)
    assert item["wait_caused_ns"] > 3 * item["excess_ns"]


def test_ranks_that_are_alike_are_said_to_be(report):
    content = report(trace(extra_ms=0))
    said = section(content, ACROSS).strong[0]
    assert said.startswith("No straggler. Largest difference in ")
    assert said.endswith("Only a rank at least 2.0 % slower could be detected")
    assert "straggler" not in " ".join(section(content, "Diagnosis").strong)


def test_communication_by_phase_and_what_is_not_known(report):
    found = section(report(trace()), "Communication")
    assert [row["communication in"] for row in cells(found, "communication in")] == [
        "time before the forward pass", "forward and backward pass", "tail",
    ]  # fmt: skip
    assert ["per step, from" in found.blocks[0].head, "overlapped" in found.blocks[0].head] == [True, False]
    assert any("may be overlapped or exposed" in note for note in found.notes)
    assert cells(found, "operator")[0]["operator"] == ".../grad_reducer/AllReduce-op1"


def test_steps_as_the_profiler_divides_them_with_bubbles_and_a_slow_link(report):
    content = report(stages())
    found, across = section(content, DIVIDED), section(content, ACROSS)
    assert cells(found, "rank")[3]["computing"] == "53.0 ms (51.5 %)"
    second = found.blocks[1]
    assert dict(zip(second.head, second.rows[2], strict=True)) == {
        "rank": "2", "overlapped": "5.00 ms", "receiving": "25.0 ms", "stage": "100 ms", "bubble": "40.0 ms (28.6 %)",
    }  # fmt: skip
    assert [row["pipeline stage"] for row in cells(across, "pipeline stage")] == ["0: rank 0 to 1", "1: rank 2 to 3"]
    assert "It is not clear whether" in across.strong[0]
    slow = "slow link: 1 to 2 (HCCS) moves equal amounts 0.25x as fast as links like it (20 moves; query rank/link)"
    assert slow in across.notes
    assert cells(across, "link")[0]["slowest"] == "1 to 2"
    network = content["diagnosis"]["network"]  # without operators the division tells what limits
    assert network["limit"] == "compute"
    assert {item["source"] for item in network["evidence"]} == {"step/split"}
    assert any("other pipeline stages" in text for text in network["suggestions"])


def test_a_division_without_stages_shows_none(report):
    row = {"source": "step_trace_time", "computing_ns": 5, "exposed_ns": 5, "bubble_ns": 0}
    found = section(report({"step_split": [row | {"rank": rank} for rank in (0, 1)]}), DIVIDED)
    assert [list(block.head) for block in found.blocks] == [["rank", "steps", "computing", "exposed communication"]]


@pytest.mark.parametrize(("top", "counts"), [(1, [1] * 5), (30, [STEPS - 1, 7, 2, 14, 4])])
def test_top_bounds_the_rows_of_every_long_table_and_hides_no_slow_link(report, top, counts):
    traced = trace()
    many = [row | {"name": f"AllReduce-op{number}"} for row in traced["collective"] for number in range(7)]
    content = report(stages() | totals() | {"step": traced["step"], "collective": many}, top=top)
    assert any(note.startswith("slow link: 1 to 2") for item in sections(content) for note in item.notes)
    longest = [("Steps", "slowest step"), ("Communication", "operator"), ("Operators", "type on AI_CORE"),
               (ACROSS, "collective"), (ACROSS, "link")]  # fmt: skip
    assert [len(cells(section(content, title), head)) for title, head in longest] == counts


def test_a_long_wait_in_front_of_the_forward_pass_is_said_where_no_dataset_was_seen(report):
    tables = trace()
    for row in tables["step"]:
        row["fp_ns"] = row["bp_ns"] = row["end_ns"] - 15 * MS
    found = section(report(tables), "Diagnosis")
    assert any(text.startswith("Before the forward pass a step waits 8") for text in found.strong)


def test_operators_known_only_in_sum_device_by_device(report):
    found = section(report(totals()), "Operators")
    core = cells(found, "type on AI_CORE")
    assert ([row["count"] for row in core], core[0]["share"]) == (["9", "1"], "90.0 %")
    assert cells(found, "type on AI_CPU")[0]["type on AI_CPU"] == "GetNext"
    assert cells(found, "operator on AI_CORE")[0]["operator on AI_CORE"] == ".../net/MatMul-op1"


@pytest.mark.parametrize(("host", "device", "ours", "theirs"), [
    (0, 0, "The data pipeline on the host is slow", "the data processing is slow"),
    (8, 0, "The transfer from the host to the device is slow", "the transmission to the device is slow"),
    (8, 4, "No queue runs empty", "the input is in time"),
])  # fmt: skip
def test_both_queues_with_our_verdict_and_mindinsight_s(report, host, device, ours, theirs):
    found = section(report(sink(host, device)), QUEUES)
    assert found.notes[0].startswith(ours)
    assert found.notes[1].startswith(f"MindInsight: {theirs} (host queue empty in ")
    for depth, row in zip((host, device), cells(found, "queue"), strict=True):
        assert int(row["batches"]) > 0
        assert (row["found empty"], row["empty"]) == (("0.0 %", "0") if depth else ("100.0 %", row["batches"]))


def test_the_depth_of_both_queues_is_shown_over_time(report):
    tables = sink(8, 0)
    for number, row in enumerate(tables["fetch"]):
        if row["side"] == "host_queue" and number >= 40:
            row["depth"] = 2
    shown = cells(section(report(tables), QUEUES), "depth over time, batches")
    assert [tuple(row.values()) for row in shown] == [
        (f"{at * 4} to {at * 4 + 3}", "8.0" if at < 5 else "2.0", "0.0") for at in range(10)
    ]


@pytest.fixture(params=["trace", "stages", "totals", "sink"])
def any_content(request, report, built):
    if request.param not in built:
        tables = {"trace": trace, "stages": stages, "totals": totals, "sink": lambda: sink(0, 0)}[request.param]()
        built[request.param] = report(tables)
    return deepcopy(built[request.param])


@pytest.mark.parametrize("width", [80, 120])
def test_every_number_fits_the_terminal(any_content, width):
    buffer = io.StringIO()
    found = sections(any_content)
    terminal._print(Console(file=buffer, width=width, highlight=False), found)
    text = buffer.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    numbers = [row[index] for part in found for block in part.blocks for row in block.rows for index in block.right]
    assert [number for number in numbers if number not in text] == []


def test_every_format_shows_the_same_sections(any_content):
    shown = [part.title for part in sections(any_content)[1:]]
    assert [title for title in shown if f"## {title}" not in markdown.text(any_content)] == []
    assert [title for title in shown if f"<h2>{title}</h2>" not in html.text(any_content)] == []
    document = json.loads(json_text.text(any_content))
    assert set(document["ranks"]) == {
        "causes", "straggler", "phase_diff", "last_arrival", "collective_wait", "stage", "flops", "slow_links", "link",
        "curve",
    }  # fmt: skip
    assert {"split", "variation", "curve", "streams", "collectives", "transports"} <= set(document["steps"])


@pytest.mark.parametrize(("tables", "said"), [
    ({"op": [{"op_id": 0, "start_ns": 0, "dur_ns": 5}], "op_info": [{"op_id": 0, "name": "a", "type": "T"}]},
     "`pipeprof ops`"),
    ({"rank_link": [{"name": "a", "src_rank": 0, "dst_rank": 1, "bytes": 5, "dur_ns": 5}]}, "do not say what runs"),
])  # fmt: skip
def test_operators_without_steps_are_not_called_missing(report, tables, said):
    assert any(said in text for text in report(tables)["diagnosis"]["network"]["suggestions"])


@pytest.mark.parametrize(("flops", "operations", "said"), [
    ([100.0, 100.0, 160.0, 160.0], ["100.00 MFLOP", "160.00 MFLOP"],
     "pipeline stage 2 computes 160.00 MFLOP in a step, 23.1 % more than the mean of the stages"),
    ([100.0, 160.0], None, "they need the files of all ranks (2 ranks of 4)"),
])  # fmt: skip
def test_a_stage_that_computes_more_is_named_as_mindinsight_names_it_where_no_rank_is_missing(
    tmp_path, flops, operations, said
):
    folder = tmp_path / "files"
    folder.mkdir()
    for rank, work in enumerate(flops):
        (folder / f"flops_summary_{rank}.json").write_text(json.dumps({"FLOPs": work, "FLOPS": 9868.936}))
        (folder / f"ascend_cluster_analyse_pipeline-parallel_2_4_{rank}.csv").write_text(
            "computation_time,communication_alone_time,stage_time,receive_alone_time,"
            "collective_communication_alone_time\n10,2,12,1,1\n11,2,13,1,1\n10.5,2,12.5,1,1\n"
        )
    found = section(build(import_path(folder, tmp_path / "flops")), ACROSS)
    assert said in " ".join(found.notes)
    assert not operations or [row["operations of a step"] for row in cells(found, "pipeline stage")] == operations
