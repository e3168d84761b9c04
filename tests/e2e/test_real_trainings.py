"""Trainings through public libraries: their loaders, trainers, callbacks. Steps, queues, names and verdict are right.

What is asserted holds on a slow and on a busy machine as well. `make test-real` installs the libraries.
"""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeprof.experiment.tune.arguments import Sources

pytestmark = [pytest.mark.mindspore, pytest.mark.real]

SCRIPTS = Path(__file__).resolve().parents[2] / "lab" / "real_trainings" / "libraries"


@dataclass(frozen=True)
class Training:
    """A script with its arguments and what is true of it.

    `python`: {operator of the training pipeline that runs Python: file that its code is in}.
    `at`: file whose line makes the training iterator. `iterators`: as many as that. `unmarked`: the library evaluates
    without callbacks of ours, so the script cannot tell when.
    """

    words: str
    source: str
    at: str
    python: dict[str, str] = field(default_factory=dict)
    train: int = 0
    evaluation: int = 0
    epochs: int = 1
    iterators: int = 1
    library: str = "mindspore"
    unmarked: bool = False


CIFAR, LENET, LOOP, MINDCV = "cifar_training.py", "lenet_training.py", "waiting_loop.py", "mindcv_training.py"
LAMBDAS = {"pipeline.<lambda>": CIFAR}
FILTER = {"filtered.filter_row": LOOP, "NumpySlicesDataset": "datasets_user_defined.py"}
TRAININGS = {
    "cifar, small batches": Training(f"{CIFAR} 1600 32", "CifarOp", CIFAR, LAMBDAS, train=100, epochs=2),
    "cifar, large batches": Training(f"{CIFAR} 10000 256", "CifarOp", CIFAR, LAMBDAS, train=78, epochs=2),
    "lenet fit": Training(f"{LENET} model", "MnistOp", LENET, train=80, evaluation=20, epochs=2),
    "lenet sink": Training(f"{LENET} sink", "MnistOp", LENET, train=80, epochs=2),
    "lenet summary": Training(f"{LENET} summary", "MnistOp", LENET, train=80, epochs=2),
    "lenet pynative": Training(f"{LENET} pynative", "MnistOp", LENET, train=80, epochs=2, iterators=2),
    "lenet jit": Training(f"{LENET} jit", "MnistOp", LENET, train=80, epochs=2, iterators=2),
    "loop that waits": Training(f"{LOOP} third 60", "GeneratorOp", LOOP, FILTER, train=60),
    "loop that seldom waits": Training(f"{LOOP} seldom 60", "GeneratorOp", LOOP, FILTER, train=60),
    "mindcv folder": Training(
        f"{MINDCV} folder", "ImageFolderOp", MINDCV, train=30, evaluation=10, epochs=2, library="mindcv", unmarked=True
    ),
    "mindcv cifar10": Training(f"{MINDCV} cifar10", "CifarOp", MINDCV, train=30, epochs=2, library="mindcv"),
    "mindcv mixup": Training(
        f"{MINDCV} mixup", "ImageFolderOp", MINDCV, {"Mixup": "mindcv/data/mixup.py"}, train=30, epochs=2,
        library="mindcv",
    ),
    "mindyolo": Training(
        "mindyolo_training.py", "GeneratorOp", "mindyolo/utils/trainer_factory.py",
        {"COCODataset": "mindyolo/data/dataset.py", "COCODataset.train_collate_fn": "mindyolo/data/dataset.py"},
        train=20, library="mindyolo",
    ),
    "mindone": Training(
        "mindone_training.py", "GeneratorOp", "mindone/transformers/trainer.py",
        {"Sentences": "mindone_training.py", "Trainer.__init__.<lambda>": "mindone/transformers/trainer.py"},
        train=40, epochs=2, iterators=2, library="mindone",
    ),
}  # fmt: skip


# All tests of a training ask one recording, so they run in one process.
@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in TRAININGS])
def training(request):
    found = TRAININGS[request.param]
    if importlib.util.find_spec(found.library) is None:
        pytest.skip(f"{found.library} is not installed: make test-real")
    return found


@pytest.fixture
def run(training, recorded):
    """The recording, which is made once. A training that fails, or fails under pipeprof only, ends the test here."""
    name, *words = training.words.split()
    return recorded(str(SCRIPTS / name), *words)


@pytest.fixture
def pipelines(run):
    return [row for row in run.rows("pipeline") if row["role"] == "train"]


@pytest.fixture
def operators(run, pipelines):
    """Those of the training pipeline's first iterator."""
    first = pipelines[0]["pipeline_id"]
    return [row for row in run.rows("pipeline_op") if row["pipeline_id"] == first]


@pytest.fixture(scope="session")
def reports():
    """{run: its report}; several tests read one."""
    return {}


@pytest.fixture
def report(run, pipeprof, reports):
    if run.path not in reports:
        done = pipeprof.run("report", run.path, "--format", "json")
        assert done.returncode == 0, done.stderr
        reports[run.path] = json.loads(done.stdout)
    return reports[run.path]


def line_of(place):
    """The text at `file:line`, and the file."""
    path, number = place.rsplit(":", 1)
    return Path(path).read_text(encoding="utf-8").splitlines()[int(number) - 1], path


def test_every_step_is_one_row_at_its_time(training, run):
    for kind, rows, expected in (
        ("train", run.training(), training.train),
        ("eval", run.evaluation(), training.evaluation),
    ):
        assert len(rows) == expected, kind
        times = [at for told, _, at in run.truth() if told == kind]
        assert len(times) == (0 if kind == "eval" and training.unmarked else expected), kind
        wrong = [at for row, at in zip(rows, times, strict=False) if not row["start_ns"] <= at <= row["end_ns"]]
        assert not wrong, f"{kind} steps elsewhere than the script made them"


def test_epochs_are_those_of_the_iterators(training, run):
    """A library that repeats its rows inside one pass over the data set has one epoch."""
    assert [row["epoch"] for row in run.training()] == [
        step * training.epochs // training.train for step in range(training.train)
    ]


def test_run_is_complete_of_one_rank_and_no_hook_failed(run):
    assert run.manifest.state == "complete", run.manifest.reason
    assert not [message for code, message in run.warned().items() if code.startswith("probe_failed")]
    assert {row["rank"] for row in run.rows("step")} == {0}  # whatever the library forked


def test_every_iterator_is_the_same_pipeline(training, pipelines):
    assert len(pipelines) == training.iterators
    assert len({row["pipeline_key"] for row in pipelines}) == 1
    assert {Path(row["site"].rsplit(":", 1)[0]).as_posix().endswith(training.at) for row in pipelines} == {True}


def test_queues_of_every_source_are_recorded(training, run, pipelines, operators):
    assert pipelines[0]["queues"] == "recorded"
    (source,) = (row for row in operators if row["op_type"] == training.source)
    sampled = {row["op_id"] for row in run.rows("queue") if row["pipeline_id"] == pipelines[0]["pipeline_id"]}
    assert source["op_id"] in sampled
    assert sampled == {row["op_id"] for row in operators if row["capacity"] is not None}


def test_iterators_without_queues_say_why_and_have_the_same_operators(run, pipelines, operators):
    for row in pipelines[1:]:
        assert row["queues"] == "recorded" or re.fullmatch(r"not_recorded: iterator \d+ was still alive", row["queues"])
        same = [one for one in run.rows("pipeline_op") if one["pipeline_id"] == row["pipeline_id"]]
        assert [(one["op_id"], one["op_type"], one["name"]) for one in same] == [
            (one["op_id"], one["op_type"], one["name"]) for one in operators
        ]


def test_python_operators_have_the_place_of_their_code(training, operators):
    found = {row["name"]: row for row in operators if row["is_python"]}
    assert set(found) == set(training.python)
    for name, file in training.python.items():
        text, path = line_of(found[name]["code"])
        assert path.endswith(file)
        assert re.search(r"\b(def|lambda|class)\b", text), text


def test_operators_have_the_place_of_the_call_that_made_them(operators):
    made = {row["op_type"]: row["site"] for row in operators if row["site"]}
    assert set(made) >= {row["op_type"] for row in operators} - {"EpochCtrlOp", "RepeatOp"}
    for place in made.values():
        assert "/mindspore/" not in place
        assert line_of(place)[0].strip()


def test_operators_that_a_library_makes_have_the_users_call(training, operators):
    for row in operators:
        if row["site"] and "site-packages" in row["site"]:
            own = [line for line in row["callers"].split("\n") if "site-packages" not in line]
            assert line_of(own[0])[1].endswith(training.words.split()[0])


def test_the_users_argument_of_mindcvs_loader_is_found(training, operators):
    """`create_loader(rows, BATCH, ..., **options)`: which is it, and that the stars may hold it."""
    if training.library == "mindcv":
        maps = [row for row in operators if row["op_type"] == "MapOp" and "data/loader.py" in row["site"]]
        found = {Sources().argument(row, "workers") for row in maps}
        assert {(argument.keyword, *argument.names, why) for argument, why in found} == {
            ("num_parallel_workers", "create_loader", "stars")
        }
        assert {line_of(argument.place)[1].endswith(MINDCV) for argument, _ in found} == {True}


def test_python_operators_are_timed(run, training, operators):
    timed = {row["op_id"] for row in run.rows("op_service") if row["source"] == "hook"}
    mapped = {row["op_id"] for row in operators if row["name"] in training.python}
    assert mapped <= timed


def test_batches_of_every_step_were_fetched(run, training):
    steps = {row["step"] for row in run.training()}
    fetched = [row["step"] for row in run.rows("fetch") if row["step"] in steps]
    assert len(fetched) == training.train


def test_report_answers_in_one_sentence_whose_facts_agree(report, operators):
    diagnosis, screen = report["diagnosis"], report["first_screen"]
    assert screen["sentence"].endswith(".")
    assert diagnosis["verdict"] in {"input_bound", "consumer_bound", "balanced"}
    assert 0 <= diagnosis["data_wait_share"] <= 1
    known = {row["op_id"] for row in operators} | {-1}
    assert set(diagnosis["candidates"]) <= known
    if diagnosis["verdict"] == "input_bound":
        assert diagnosis["op_id"] in known
        assert diagnosis["op_id"] == diagnosis["candidates"][0]
    assert (diagnosis["confidence"] == "high") == (not diagnosis["doubts"])


def test_steps_of_the_report_are_those_of_the_training(report, training):
    counted = {row["kind"]: row["steps"] for row in report["steps"]["summary"]}
    assert counted.get("train", 0) + counted.get("warmup", 0) == training.train
    assert counted.get("eval", 0) == training.evaluation
