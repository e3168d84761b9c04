"""What MindInsight 2.3.1 says of profiler folders: `mindinsight_answers.py OUT NAME=FOLDER:RANK ...` writes OUT/NAME.json.

Its analysers and proposers are called as its web server calls them. Where one raises, the answer is its exception.
"""

import json
import sys
from pathlib import Path

from mindinsight.profiler.analyser.analyser_factory import AnalyserFactory
from mindinsight.profiler.analyser.minddata_analyser import MinddataAnalyser
from mindinsight.profiler.proposer.compose_proposer import ComposeProposal
from mindinsight.profiler.proposer.proposer_factory import ProposerFactory

PHASES = ("iteration_interval", "fp_and_bp", "tail", "total")
INTERVAL = {"filter_condition": {"mode": "proc", "proc_name": "iteration_interval", "step_id": 0}}
ADVICE = {"step_trace": {"iter_interval": INTERVAL}}


def tried(ask, *arguments):
    try:
        return ask(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        return {"__error__": type(error).__name__}


def step_trace(folder, rank):
    analyser = AnalyserFactory.instance().get_analyser("step_trace", folder, rank)
    found = {"summary": analyser.summary, "point_info": analyser.point_info(1)}
    for phase in PHASES:
        asked = {"filter_condition": {"mode": "proc", "proc_name": phase}}
        found["proc_" + phase] = analyser.query(asked)["info"][phase]
    found["all_reduce_events_ms_first20"] = analyser.query_for_all_reduce()[:20]
    return found


def queues(folder, rank):
    analyser = AnalyserFactory.instance().get_analyser("minddata", folder, rank)
    (device, _), (host, _) = analyser.analyse_get_next_info(), analyser.analyse_device_queue_info()
    summary = MinddataAnalyser.analyse_queue_summary(device, host)
    return {"get_next": {"queue": device}, "device_queue": {"queue": host}, "queue_summary": summary}


def pipeline(folder, rank):
    analyser = AnalyserFactory.instance().get_analyser("minddata_pipeline", folder, rank)
    return {"all": analyser.query({"filter_condition": {"is_display_op_detail": True}}),
            "outside_threshold_[0.8,0.6]": analyser.query({"filter_condition": {"threshold": [0.8, 0.6]}})}  # fmt: skip


def table(name):
    return lambda folder, rank: AnalyserFactory.instance().get_analyser(name, folder, rank).query({})


def operators(folder, rank):
    asked = {"filter_condition": {"is_display_detail": True, "is_display_full_op_name": True}}
    return AnalyserFactory.instance().get_analyser("aicore_detail", folder, rank).query(asked)


def cpu(folder, rank):
    return AnalyserFactory.instance().get_analyser("minddata_cpu_utilization", folder, rank).query({})


def proposer(name):
    return lambda folder, rank: ProposerFactory.instance().get_proposer(name, folder, rank).analyze(ADVICE)


def composed(folder, rank):
    return ComposeProposal(folder, rank, ["step_trace", "minddata", "minddata_pipeline", "common"]).get_proposal(ADVICE)


ASKED = {
    "step_trace": step_trace, "minddata": queues, "minddata_pipeline": pipeline, "minddata_cpu_utilization": cpu,
    "aicore_type": table("aicore_type"), "aicore_detail": operators, "aicpu_type": table("aicpu_type"),
    "proposer_step_trace": proposer("step_trace"), "proposer_minddata": proposer("minddata"),
    "proposer_minddata_pipeline": proposer("minddata_pipeline"), "compose": composed, "parallel": proposer("parallel"),
}  # fmt: skip


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for case in sys.argv[2:]:
        name, _, place = case.partition("=")
        folder, _, rank = place.rpartition(":")
        answer = {part: tried(ask, str(Path(folder).resolve()), rank) for part, ask in ASKED.items()}
        (out / (name + ".json")).write_text(json.dumps(answer), encoding="utf-8")
