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

MS = 1_000_000
STEPS, RANKS, SLOW = 30, 4, 2


def trace(extra_ms=8):
    """A step trace of ranks in lockstep: work up to BP, then an all-reduce in the tail; one rank works longer."""
    chance = random.Random(3)  # noqa: S311 - test data
    tables = {"step": [], "collective": []}
    clock = 0
    for number in range(STEPS):
        work = [int(chance.gauss(60, 0.5) * MS) + (extra_ms * MS if rank == SLOW else 0) for rank in range(RANKS)]
        end = clock + 4 * MS + max(work) + 10 * MS
        for rank in range(RANKS):
            fp, bp = clock + 2 * MS, clock + 2 * MS + work[rank]
            here = {"rank": rank, "step": number}
            tables["step"].append(
                {**here, "kind_step": number, "kind": "warmup" if number == 0 else "train", "start_ns": clock, "fp_ns": fp,
                 "bp_ns": bp, "end_ns": end, "data_wait_ns": 2 * MS, "fp_source": "op", "in_window": False}
            )  # fmt: skip
            tables["collective"].append(
                {**here, "name": "Default/grad_reducer/AllReduce-op1", "kind": "all_reduce", "track": "stream 3",
                 "start_ns": bp, "dur_ns": end - bp - MS}
            )  # fmt: skip
        clock = end
    return tables


def stages():
    """Two pipeline stages of two ranks in one step, the second with bubbles; links, one of them slow."""
    common = {"source": "cluster_step_trace", "source_step": 2, "overlapped_ns": 5 * MS, "free_ns": 20 * MS}
    split = [
        {**common, "rank": rank, "computing_ns": (50 + rank) * MS, "exposed_ns": 30 * MS, "stage_ns": 100 * MS,
         "bubble_ns": 0 if rank < 2 else 40 * MS, "exposed_without_receive_ns": 30 * MS if rank < 2 else 5 * MS}
        for rank in range(RANKS)
    ]  # fmt: skip
    split += [{**common, "rank": first, "stage_index": index} for index, first in enumerate((0, 2))]
    links = [
        {"rank": 0, "name": f"op{number}", "src_rank": src, "dst_rank": dst, "transport": "HCCS", "bytes": 1 << 20,
         "dur_ns": 400_000 if (src, dst) == (1, 2) else 100_000}
        for number in range(20) for src, dst in ((0, 1), (1, 2), (2, 3), (3, 0))
    ]  # fmt: skip
    return {"step_split": split, "rank_link": links}


def totals():
    common = {"source": "aicore_type", "device": "AI_CORE"}
    return {
        "op_total": [
            {**common, "type": "MatMul", "count": 9, "total_ns": 9 * MS, "mean_ns": MS},
            {**common, "type": "Cast", "count": 1, "total_ns": MS, "mean_ns": MS},
            {**common, "source": "aicore_detail", "name": "Default/net/MatMul-op1", "type": "MatMul", "count": 9,
             "total_ns": 9 * MS, "mean_ns": MS},
            {"source": "aicpu", "device": "AI_CPU", "type": "GetNext", "count": 2, "total_ns": 4 * MS, "mean_ns": 2 * MS},
        ]
    }  # fmt: skip


@pytest.fixture
def imported(make_run):
    def made(tables):
        run = make_run(tables)
        run.manifest.source, run.manifest.state = "import:ascend", "complete"
        return run

    return made


def section(run, title):
    return next((found for found in sections(build(run)) if found.title == title), None)


def cells(found, head):
    block = next(block for block in found.blocks if block.head[0] == head)
    return [dict(zip(block.head, row, strict=True)) for row in block.rows]


def test_the_straggler_is_named_first_with_its_evidence(imported):
    content = build(imported(trace()))
    found = content["ranks"]["straggler"]
    assert (found["verdict"], [item["rank"] for item in found["found"]]) == ("straggler", [SLOW])
    item = found["found"][0]
    assert item["phase"] == "forward_backward"
    assert item["excess_ns"] == pytest.approx(8 * MS, rel=0.1)
    assert item["wait_caused_ns"] == pytest.approx(8 * MS, rel=0.1)
    assert item["collective"] == "Default/grad_reducer/AllReduce-op1"
    assert {part["source"] for part in item["evidence"]} == {"rank/phase_diff", "rank/last_arrival"}
    said = [text for part in sections(content) for text in part.strong]
    assert sum(text.startswith(f"Rank {SLOW} is a straggler: ") for text in said) == 1  # and not again further down


def overlapped(extra_ms, buckets=10):
    """Gradients are reduced beside the backward pass, bucket by bucket; every bucket waits for its slowest rank."""
    chance = random.Random(4)  # noqa: S311 - test data
    tables = {"step": [], "collective": []}
    clock = 0
    for number in range(STEPS):
        work = [int(chance.gauss(60, 0.3) * MS) + (extra_ms * MS if rank == SLOW else 0) for rank in range(RANKS)]
        reached = clock
        for bucket in range(1, buckets + 1):
            ready = [clock + own * bucket // buckets for own in work]
            begin, reached = reached, max(reached, *ready) + MS // 10
            tables["collective"] += [
                {"rank": rank, "step": number, "name": f"AllReduce-op{bucket}", "kind": "all_reduce", "track": "stream 3",
                 "start_ns": max(ready[rank], begin), "dur_ns": reached - max(ready[rank], begin)}
                for rank in range(RANKS)
            ]  # fmt: skip
        end = reached + MS
        tables["step"] += [
            {"rank": rank, "step": number, "kind_step": number, "kind": "train", "start_ns": clock, "fp_ns": clock,
             "bp_ns": clock + work[rank], "end_ns": end, "fp_source": "op", "in_window": False}
            for rank in range(RANKS)
        ]  # fmt: skip
        clock = end
    return tables


def test_a_straggler_is_sized_right_when_communication_overlaps(imported):
    """The others wait in every bucket, so that waits count again and again, but the step is late only once."""
    item = build(imported(overlapped(extra_ms=5)))["ranks"]["straggler"]["found"][0]
    assert (item["rank"], item["measure"]) == (SLOW, "until_bp")
    assert item["excess_ns"] == pytest.approx(5 * MS, rel=0.1)
    assert item["wait_caused_ns"] > 3 * item["excess_ns"]


def test_ranks_that_are_alike_are_said_to_be(imported):
    found = section(imported(trace(extra_ms=0)), "Stragglers and waits between ranks")
    assert found.strong[0].startswith("No straggler. Largest difference in ")
    assert found.strong[0].endswith("Only a rank at least 2.0 % slower could be detected")
    assert "straggler" not in " ".join(section(imported(trace(extra_ms=0)), "Diagnosis").strong)


def test_communication_by_phase_and_what_is_not_known(imported):
    found = section(imported(trace()), "Communication")
    assert [row["communication in"] for row in cells(found, "communication in")] == [
        "time before the forward pass",
        "forward and backward pass",
        "tail",
    ]
    assert "per step, from" in found.blocks[0].head
    assert "overlapped" not in found.blocks[0].head
    assert any("may be overlapped or exposed" in note for note in found.notes)
    assert cells(found, "operator")[0]["operator"] == ".../grad_reducer/AllReduce-op1"


def test_steps_as_the_profiler_divides_them_with_bubbles(imported):
    run = imported(stages())
    found = section(run, "Steps, as their profiler divides them")
    assert cells(found, "rank")[3]["computing"] == "53.0 ms (51.5 %)"
    second = found.blocks[1]
    assert dict(zip(second.head, second.rows[2], strict=True)) == {
        "rank": "2", "overlapped": "5.00 ms", "receiving": "25.0 ms", "stage": "100 ms", "bubble": "40.0 ms (28.6 %)",
    }  # fmt: skip
    across = section(run, "Stragglers and waits between ranks")
    assert [row["pipeline stage"] for row in cells(across, "pipeline stage")] == ["0: rank 0 to 1", "1: rank 2 to 3"]
    assert "It is not clear whether" in across.strong[0]


def test_a_division_without_stages_shows_none(imported):
    rows = [
        {"source": "step_trace_time", "rank": r, "computing_ns": 5, "exposed_ns": 5, "bubble_ns": 0} for r in (0, 1)
    ]
    found = section(imported({"step_split": rows}), "Steps, as their profiler divides them")
    assert [list(block.head) for block in found.blocks] == [["rank", "steps", "computing", "exposed communication"]]


def test_a_slow_link_is_named(imported):
    across = section(imported(stages()), "Stragglers and waits between ranks")
    assert (
        "slow link: 1 to 2 (HCCS) moves equal amounts 0.25x as fast as links like it (20 moves; query rank/link)"
        in across.notes
    )
    assert cells(across, "link")[0]["slowest"] == "1 to 2"


def test_top_bounds_the_rows_of_every_long_table_and_hides_no_slow_link(imported):
    tables = stages() | totals()
    tables["collective"] = [
        row | {"name": f"AllReduce-op{number}"} for row in trace()["collective"] for number in range(7)
    ]
    tables["step"] = trace()["step"]
    run = imported(tables)

    def shown(top, title, head):
        content = build(run, top=top)
        found = next(item for item in sections(content) if item.title == title)
        assert any(note.startswith("slow link: 1 to 2") for item in sections(content) for note in item.notes)
        return len(cells(found, head))

    longest = [("Steps", "slowest step"), ("Communication", "operator"), ("Operators", "type on AI_CORE"),
               ("Stragglers and waits between ranks", "collective"),
               ("Stragglers and waits between ranks", "link")]  # fmt: skip
    assert [shown(1, *one) for one in longest] == [1, 1, 1, 1, 1]
    assert [shown(30, *one) for one in longest] == [STEPS - 1, 7, 2, 14, 4]


def test_without_operators_the_division_tells_what_limits_the_step(imported):
    found = build(imported(stages()))["diagnosis"]["network"]
    assert found["limit"] == "compute"
    assert {item["source"] for item in found["evidence"]} == {"step/split"}
    assert any("other pipeline stages" in text for text in found["suggestions"])


def test_a_short_wait_in_front_of_the_forward_pass_clears_the_data(imported):
    content = build(imported(trace()))
    assert content["diagnosis"]["verdict"] == "consumer_bound"
    assert content["diagnosis"]["data_wait_share"] == pytest.approx(0.025, abs=0.003)
    assert content["diagnosis"]["confidence"] == "medium"


def test_a_long_wait_in_front_of_the_forward_pass_is_said_where_no_dataset_was_seen(imported):
    tables = trace()
    for row in tables["step"]:
        row["fp_ns"] = row["bp_ns"] = row["end_ns"] - 15 * MS
    found = section(imported(tables), "Diagnosis")
    assert any(text.startswith("Before the forward pass a step waits 8") for text in found.strong)


def test_operators_known_only_in_sum_device_by_device(imported):
    found = section(imported(totals()), "Operators")
    assert [row["count"] for row in cells(found, "type on AI_CORE")] == ["9", "1"]
    assert cells(found, "type on AI_CORE")[0]["share"] == "90.0 %"
    assert cells(found, "type on AI_CPU")[0]["type on AI_CPU"] == "GetNext"
    assert cells(found, "operator on AI_CORE")[0]["operator on AI_CORE"] == ".../net/MatMul-op1"


def sink(host_depth, device_depth):
    fetch = [
        {"pipeline_id": 0, "fetch": n, "start_ns": n * 10 * MS, "wait_ns": MS, "push_ns": MS, "side": side, "depth": depth,
         "capacity": 8}
        for n in range(40) for side, depth in (("host_queue", host_depth), ("data_queue", device_depth))
    ]  # fmt: skip
    steps = [
        {"step": n, "kind_step": n, "kind": "train", "pipeline_id": 0, "start_ns": n * 10 * MS, "fp_ns": n * 10 * MS + 6 * MS,
         "end_ns": (n + 1) * 10 * MS, "fetch_wait_ns": 6 * MS}
        for n in range(40)
    ]  # fmt: skip
    return {
        "fetch": fetch, "step": steps,
        "pipeline": [{"pipeline_id": 0, "pipeline_key": "a", "role": "train"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("host", "device", "ours", "theirs"),
    [
        (0, 0, "The data pipeline on the host is slow", "the data processing is slow"),
        (8, 0, "The transfer from the host to the device is slow", "the transmission to the device is slow"),
        (8, 4, "No queue runs empty", "the input is in time"),
    ],
)
def test_both_queues_with_our_verdict_and_mindinsight_s(imported, host, device, ours, theirs):
    found = section(imported(sink(host, device)), "Queues between host and device")
    assert found.notes[0].startswith(ours)
    assert found.notes[1].startswith(f"MindInsight: {theirs} (host queue empty in ")
    assert [row["found empty"] for row in cells(found, "queue")] == [
        "0.0 %" if d else "100.0 %" for d in (host, device)
    ]
    counted = cells(found, "queue")
    assert [row["empty"] for row in counted] == [
        "0" if d else row["batches"] for d, row in zip((host, device), counted, strict=True)
    ]
    assert all(int(row["batches"]) > 0 for row in counted)


def test_the_depth_of_both_queues_is_shown_over_time(imported):
    tables = sink(8, 0)
    for number, row in enumerate(tables["fetch"]):
        if row["side"] == "host_queue" and number >= 40:
            row["depth"] = 2
    shown = cells(section(imported(tables), "Queues between host and device"), "depth over time, batches")
    assert [tuple(row.values()) for row in shown] == [
        (f"{at * 4} to {at * 4 + 3}", "8.0" if at < 5 else "2.0", "0.0") for at in range(10)
    ]


@pytest.fixture(params=["trace", "stages", "totals", "sink"])
def any_content(request, imported, built):
    if request.param not in built:
        tables = {"trace": trace, "stages": stages, "totals": totals, "sink": lambda: sink(0, 0)}[request.param]()
        built[request.param] = build(imported(tables))
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
    for part in sections(any_content)[1:]:
        assert f"## {part.title}" in markdown.text(any_content)
        assert f"<h2>{part.title}</h2>" in html.text(any_content)
    document = json.loads(json_text.text(any_content))
    assert set(document["ranks"]) == {
        "causes", "straggler", "phase_diff", "last_arrival", "collective_wait", "stage", "flops", "slow_links", "link",
        "curve",
    }  # fmt: skip
    assert {"split", "variation", "curve", "streams", "collectives", "transports"} <= set(document["steps"])


def test_the_curve_stands_for_every_step(imported):
    content = build(imported(trace()))
    assert sum(point["steps"] for point in content["steps"]["curve"]) == STEPS
    assert len({(row["phase"], row["point"]) for row in content["ranks"]["curve"]}) == len(content["ranks"]["curve"])


def test_operators_without_steps_are_not_called_missing(imported):
    ops = {"op": [{"op_id": 0, "start_ns": 0, "dur_ns": 5}], "op_info": [{"op_id": 0, "name": "a", "type": "T"}]}
    assert any("`pipeprof ops`" in text for text in build(imported(ops))["diagnosis"]["network"]["suggestions"])
    link = {"rank_link": [{"name": "a", "src_rank": 0, "dst_rank": 1, "bytes": 5, "dur_ns": 5}]}
    assert any("do not say what runs" in text for text in build(imported(link))["diagnosis"]["network"]["suggestions"])


def said_of_flops(make_run, files):
    """What the section on stragglers says after the import of `flops_summary_*` and a cluster's files."""
    folder = make_run({}).path.parent / "files"
    folder.mkdir()
    for rank, work in enumerate(files):
        (folder / f"flops_summary_{rank}.json").write_text(json.dumps({"FLOPs": work, "FLOPS": 9868.936}))
        (folder / f"ascend_cluster_analyse_pipeline-parallel_2_4_{rank}.csv").write_text(
            "computation_time,communication_alone_time,stage_time,receive_alone_time,"
            "collective_communication_alone_time\n10,2,12,1,1\n11,2,13,1,1\n10.5,2,12.5,1,1\n"
        )
    return section(import_path(folder, folder.parent / "flops"), "Stragglers and waits between ranks")


def test_a_stage_that_computes_more_is_named_as_mindinsight_names_it(make_run):
    found = said_of_flops(make_run, [100.0, 100.0, 160.0, 160.0])
    assert [row["operations of a step"] for row in cells(found, "pipeline stage")] == ["100.00 MFLOP", "160.00 MFLOP"]
    assert "pipeline stage 2 computes 160.00 MFLOP in a step, 23.1 % more than the mean of the stages" in " ".join(
        found.notes
    )


def test_ranks_that_are_missing_keep_mindinsight_from_naming_a_stage(make_run):
    found = said_of_flops(make_run, [100.0, 160.0])
    assert any("they need the files of all ranks (2 ranks of 4)" in note for note in found.notes)
