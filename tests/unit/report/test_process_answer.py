"""The words for a process that takes the CPU of the training."""

import pytest
from run_verdicts import answered

from pipeprof.record.schema import BY_NAME
from pipeprof.report.answer.screen import height, lines
from pipeprof.report.sections.cpu import cpu_section
from pipeprof.report.words.names import CPU_USERS

FOUND = {
    "kind": "cpu_contention", "rep": 0, "rank": 0, "part": "child", "pid": 12, "processes": 1, "what": "WriterPool",
    "command": "python train.py", "site": "/w/train.py:9", "library": "/lib/mindspore/train/summary/_writer_pool.py:84",
    "cores": 0.9, "job_share": 0.45, "training_cores": 1.1, "wait_cores": 2.81, "available_cores": 2.0,
    "idle_share": 0.0, "other_cores": 0.0, "sampled_ns": 51_000_000_000, "doubts": [], "confidence": "high",
    "leads": True,
}  # fmt: skip
RUN = {"path": "r", "state": "complete", "reason": None, "source": "collect", "command": ["python", "train.py"],
       "workdir": None, "git": None, "reps": []}  # fmt: skip


def answer(**more):
    content = {"run": RUN, "diagnosis": {"process": FOUND | more, "verdict": "consumer_bound", "network": None,
                                     "data_wait_share": 0.0, "confidence": "high"}}  # fmt: skip
    return answered(content)


def test_the_first_sentence_names_it_with_its_origin_and_share():
    assert answer().sentence == (
        "Short of CPU: the process `WriterPool`, started at /w/train.py:9, takes 45 % of the job's CPU, "
        "and no core is idle."
    )


def test_cause_place_gain_and_reason_have_the_numbers():
    given = answer()
    assert given.cause == (
        "During the steady steps the process `WriterPool` used 0.9 and the training 1.1 of 2 cores; on average 2.8 threads "
        "of the training were ready to run and had no core."
    )
    assert given.place == "/w/train.py:9; made by /lib/mindspore/train/summary/_writer_pool.py:84"
    assert given.gain == "That frees 0.9 cores for the training, which now has 1.1 of 2 cores"
    assert given.confidence_reason == "it was sampled for 51.0 s of steady training"
    assert given.next_command == "pipeprof collect -o r-changed -- python train.py"


@pytest.mark.parametrize(("library", "word"), [(FOUND["library"], "SummaryCollector"), ("", "block=False")])
def test_the_action_is_that_of_the_library_where_it_is_known(library, word):
    assert word in answer(library=library).action


@pytest.mark.parametrize(
    ("more", "begin"),
    [
        ({"what": "", "site": ""}, "Short of CPU: the process `python train.py` takes 45 %"),
        ({"what": "", "site": "", "command": ""}, "Short of CPU: the process `12` takes"),
        ({"what": "", "command": "/usr/bin/spin --a /b"}, "Short of CPU: the process `spin --a /b`, started at"),
        ({"what": "", "command": "x" * 99}, f"Short of CPU: the process `{'x' * 37}...`, started at"),
        ({"processes": 4, "what": "worker"}, "Short of CPU: 4 processes `worker`, started at /w/train.py:9, take 45 %"),
    ],
)
def test_names_where_less_is_known(more, begin):
    assert answer(**more).sentence.startswith(begin)


def test_other_programs_and_unknown_waits():
    given = answer(other_cores=0.5, wait_cores=None, doubts=[{"code": "short", "ns": 3_000_000_000}])
    assert given.cause.endswith("1.1 of 2 cores, other programs 0.5.")
    assert given.confidence_reason == "only 3.00 s of steady training was sampled"


def test_it_fits_the_first_screen():
    assert height(lines(answer(), "r: 64 training steps.", "More: --full.")) <= 20


def test_a_process_that_may_feed_the_pipeline_is_not_the_answer():
    content = {
        "run": RUN, "diagnosis": {"process": FOUND | {"leads": False}, "verdict": "consumer_bound", "network": {
            "limit": "not_measured", "actions": []}, "data_wait_share": 0.01, "confidence": "low", "doubt_facts": [], "suggestions": []},
        "ranks": {"straggler": {"found": []}}, "steps": {"summary": []}, "ops": [], "op_totals": [],
    }  # fmt: skip
    assert not answered(content).sentence.startswith("Short of CPU")


def row(part, cpu, share, **more):
    return {"rep": 0, "rank": 0, "phase": "steady", "part": part, "what": "", "site": "", "library": "", "command": "",
            "pid": None, "processes": 0, "cpu_ns": cpu, "cores": cpu / 4, "wait_cores": None, "job_share": share} | more  # fmt: skip


def test_the_section_shows_who_used_most_first():
    parts = [
        row("neighbour", 9, None),
        row("main", 1, 0.25),
        row("child", 3, 0.75, what="Writer", site="t.py:9", processes=1, pid=12),
    ]
    account = {"parts": parts, "room": [], "contention": FOUND}
    section = cpu_section({"cpu_account": account}, (0, 0))
    (block,) = section.blocks
    assert [cells[0] for cells in block.rows] == [
        "other process: Writer", "main thread of the training", "other programs of the machine"
    ]  # fmt: skip
    assert block.head == ["CPU, steady", "cores", "of the job", "started at, or is"]
    assert section.strong == [
        "The process `WriterPool` (started at /w/train.py:9) takes 45.0 % of the job's CPU; no core is idle"
    ]


def test_what_was_left_is_listed_by_phase_in_the_order_of_time():
    left = {"rep": 0, "rank": 0, "cores": 2.0, "idle_share": 0.25, "job_cores": 1.5, "neighbour_cores": None,
            "pressure_share": None, "throttled_share": 0.0, "steal_cores": 0.0}  # fmt: skip
    account = {"parts": [], "room": [left | {"phase": phase} for phase in ("ending", "set_up")], "contention": None}
    (block,) = cpu_section({"cpu_account": account}, (0, 0)).blocks
    assert [row[:4] for row in block.rows] == [
        ["set-up", "2.00", "25.0 %", "1.50"],
        ["after", "2.00", "25.0 %", "1.50"],
    ]


def test_every_part_has_a_name_and_a_word_in_the_schema():
    doc = next(column.doc for column in BY_NAME["cpu_use"].columns if column.name == "part")
    assert [part for part in CPU_USERS if part not in doc] == []
