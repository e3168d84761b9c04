"""DataLoaders of MindSpore and PyTorch: batches, random numbers and errors as without a recorder, and its stages in the run."""

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import WORKLOADS, clean_environment, script

from pipeprof.report.run_verdict import verdict_of

pytestmark = pytest.mark.mindspore
EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = ["mindspore", *(["torch"] if find_spec("torch") else [])]
OURS = re.compile(r'  File "[^"]*/collect/probe/.*\n(?:    .*\n)*', re.MULTILINE)
NUMBERS = re.compile(r"pid[^ ]* *\d+|line \d+")


STATEFUL = ["torchdata"] if find_spec("torchdata") else []


@pytest.fixture(scope="module", params=[*LIBRARIES, *STATEFUL])
def command(request):
    return script("dataloaders.py", request.param)


@pytest.fixture(scope="module")
def every_way(command, pipeprof_in):
    return pipeprof_in("every_way").collect(command)


def errors(text):
    said = text[text.rindex("Traceback") :] if "Traceback" in text else text
    return NUMBERS.sub("", OURS.sub("", said)).partition("\npipeprof:")[0].strip()


def test_whatever_it_hands_out_and_however_it_ends_is_as_without_a_recorder(every_way, command):
    plain = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment(), cwd=WORKLOADS)
    assert plain.returncode == every_way.done.returncode == 1
    assert every_way.done.stdout == plain.stdout
    assert errors(every_way.done.stderr) == errors(plain.stderr)
    assert not [code for code in every_way.warned() if code.startswith("probe_failed")]


def test_all_batches_are_fetches_and_all_rows_are_counted_where_they_are_made(every_way):
    assert every_way.training()[-1]["step"] == 5
    batches = [line for line in every_way.done.stdout.splitlines() if re.match(r"\w+ \d+ \d+ \[", line)]
    fetched = every_way.rows("fetch")
    assert len(fetched) == len(batches) + every_way.done.stdout.count("loss")
    apart = {row["pipeline_id"] for row in every_way.rows("pipeline") if json.loads(row["settings"])["num_workers"]}
    stages = {row["op_type"] for row in every_way.rows("pipeline_op")}
    assert stages == {"Collate", "Dataset", "Sampler"}
    assert all(
        (row["depth"] is not None and row["held"] <= row["depth"] <= row["capacity"]) == (row["pipeline_id"] in apart)
        for row in fetched
    )
    rows = {row["pipeline_id"]: 0 for row in every_way.rows("pipeline")}
    for row in every_way.rows("op_service"):
        rows[row["pipeline_id"]] += row["rows"] if row["op_id"] == 1 else 0
    assert rows[0] in (24, 28)  # the fetch that finds a stream at its end asked for four more
    assert rows[1] == 24
    assert 24 in [rows[number] for number in apart]
    assert not [message for message in every_way.warned().values() if "damaged" in message]


@pytest.mark.parametrize("library", [*LIBRARIES, *STATEFUL])
@pytest.mark.parametrize(("kind", "workers", "stage"), [("row", "0", "Dataset"), ("collate", "2", "Collate")])
def test_the_stage_that_is_slow_is_named_with_its_kind_and_more_workers(recorded, library, kind, workers, stage):
    command = ("slow_loader.py", library, kind, "50", workers)
    found = verdict_of(recorded(*command).run)
    lead = found.verdict.lead
    assert (lead.code, lead.stage.op_type, lead.detail) == ("input_bound", stage, "wait")
    waits = float(re.search(r"waited ([\d.]+)", recorded(*command).done.stdout)[1])
    assert lead.share == pytest.approx(waits, abs=0.1)


@pytest.mark.slow
@pytest.mark.measures
@pytest.mark.parametrize("library", LIBRARIES)
def test_whatif_makes_the_loader_with_other_arguments_and_gains_what_its_workers_make(pipeprof_in, library):
    """Each batch of the unchanged side waits 150 ms; two workers wait for two at a time, while the training computes."""
    home = pipeprof_in("whatif")
    recording = home.collect(home.script("slow_loader.py", library, "row", "24", "0"), "-q")
    out = home.out()
    done = home.run(
        "whatif", str(recording.path), "--op", "Dataset", "--workers", "2", "--prefetch", "1", "--max-pairs", "1",
        "-o", str(out), "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["change"] == {"workers": [0, 2], "prefetch": [None, 1]}
    assert found["measured"]["ratio"] > 1.3
    assert 1.3 < found["prediction"]["ratio"] < 3.4  # a step takes a third of that wait, or less
    applied = {
        side: json.loads((out / side / "run.json").read_text())["options"]["override_applied"] for side in ("a0", "b0")
    }
    assert [event["after"] for event in applied["b0"]] == [{"workers": 2, "prefetch": 1}]
    assert applied["a0"] == []


@pytest.mark.slow
@pytest.mark.measures
@pytest.mark.parametrize("library", LIBRARIES)
def test_headspace_hands_out_the_first_batch_again_and_runs_no_worker(pipeprof_in, library):
    """Each batch of the unchanged side waits 75 ms, of the other one none does; both train for 24 steps."""
    home = pipeprof_in("headspace")
    out = home.out()
    command = home.script("slow_loader.py", library, "row", "24", "2")
    done = home.run("headspace", "--max-pairs", "1", "-o", str(out), "--format", "json", "--", *command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["measured"]["ratio"] > 1.3
    assert {run["training_steps"] for run in found["runs"]} == {24}
    waits = {side: float(re.search(r"waited ([\d.]+)", (out / f"{side}.log").read_text())[1]) for side in ("a0", "b0")}
    assert waits["b0"] < 0.25 * waits["a0"]
    warned = [one["code"] for one in json.loads((out / "b0" / "run.json").read_text())["warnings"]]
    assert not [code for code in warned if code.startswith("probe_failed")]


def test_whatif_refuses_what_a_loader_cannot_have(recorded, pipeprof_in):
    home = pipeprof_in("refused")
    run = str(recorded("slow_loader.py", "mindspore", "row", "50", "0").path)
    for words, said in (
        (("--workers", "0"), "already has these settings (num_workers 0)"),
        (("--persistent",), "needs worker processes"),
        (("--workers", "2", "--processes"), "are processes"),
    ):
        done = home.run("whatif", run, "--op", "Dataset", *words, "-o", str(home.out()))
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr


@pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed: make test-torch")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_transform_that_torchvision_composes_is_a_stage_and_the_training_is_as_it_was(recorded, workers):
    command = script("image_folder.py", workers)
    plain = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment(), cwd=WORKLOADS)
    recording = recorded("image_folder.py", workers)
    assert recording.done.stdout == plain.stdout
    assert len(recording.training()) == 40
    chain = {
        row["op_id"]: (row["op_type"], row["name"]) for row in recording.rows("pipeline_op") if not row["pipeline_id"]
    }
    transforms = ["RandomErasing", "ToTensor", "Slow", "Resize"]
    assert [chain[number] for number in sorted(chain)] == [
        ("Collate", "default_collate"), *(("Transform", name) for name in transforms), ("Dataset", "Subset"),
        ("Sampler", "BatchSampler"),
    ]  # fmt: skip
    rows = dict.fromkeys(range(1, 6), 0)
    spent = dict.fromkeys(range(1, 6), 0)
    for row in recording.rows("op_service"):
        if row["op_id"] in rows:
            rows[row["op_id"]] += row["rows"]
            spent[row["op_id"]] += row["rows"] * row["avg_ns"]
    (counted,) = set(rows.values())  # those after the last timed one are in no figure
    assert 160 <= counted <= 2 * 160
    assert max(spent, key=spent.get) == 3  # Slow


def of_library(name):
    """A test with a library that the extra `torch` brings, which another extra may bring without PyTorch."""
    missing = None in (find_spec("torch"), find_spec(name))
    return pytest.mark.skipif(missing, reason=f"{name} is not installed: make test-torch")


@pytest.mark.parametrize(
    ("example", "words", "name", "evaluated"),
    [
        pytest.param("hugging_face_trainer.py", [], "Texts", 0, marks=of_library("transformers")),
        pytest.param("lightning_module.py", ["--cost", "160"], "Pictures", 2 * 4, marks=of_library("lightning")),
    ],
)
def test_a_trainer_of_torch_has_its_steps_and_the_slow_dataset_its_line(recorded, example, words, name, evaluated):
    """Each trains 40 steps; the two batches that Lightning validates before the first one are looked at, and no more."""
    script_of = EXAMPLES / example
    recording = recorded("other_torch.py", str(script_of), *words)
    assert recording.done.returncode == 0, recording.done.stderr
    steps = recording.rows("step")
    assert len(recording.training()) == 40
    assert sum(row["kind"] == "eval" for row in steps) == evaluated
    assert {row["updates"] for row in recording.training()} == {1}
    found = verdict_of(recording.run)
    lead = found.verdict.lead
    assert (lead.code, lead.stage.op_type, lead.stage.name) == ("input_bound", "Dataset", name)
    assert found.diagnosis["place"]["code"].startswith(f"{script_of}:")
    warned = [code for code in recording.warned() if code.startswith("probe_failed")]
    assert warned == []


def divided(steps):
    """Training steps without the one that ran line by line, of which no pass has a time of its own."""
    slow = [row for row in steps if row["forward_ns"] is None]
    assert [(row["in_window"], row["backward_ns"]) for row in slow] == [(True, None)]
    return [row for row in steps if row["forward_ns"] is not None]


PASSES = ("input_ns", "forward_ns", "backward_ns", "gradients_ns", "optimizer_ns", "after_ns")


@of_library("torch")
def test_steps_of_torch_with_accumulation_have_their_passes_which_add_up(recorded):
    """320 rows in batches of 4, one update of two optimizers for each four batches, twice; 3 batches of validation."""
    command = script("torch_steps.py")
    plain = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment(), cwd=WORKLOADS)
    recording = recorded("torch_steps.py")
    assert recording.done.stdout == plain.stdout
    steps = recording.training()
    assert [row["updates"] for row in steps] == [2] * 40
    assert [row["epoch"] for row in steps] == [0] * 20 + [1] * 20
    assert sum(row["kind"] == "eval" for row in recording.rows("step")) == 2 * 3
    for row in divided(steps):
        assert min(row[name] for name in ("forward_ns", "backward_ns", "optimizer_ns")) > 0
        assert sum(row[name] for name in PASSES) == row["end_ns"] - row["start_ns"]


@of_library("torch")
def test_processes_of_torchrun_are_ranks_and_who_waits_has_a_long_backward_pass(pipeprof_in):
    home = pipeprof_in("torchrun")
    launcher = [home.python, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    recording = home.collect([*launcher, str(WORKLOADS / "torch_steps.py")], "-q")
    assert recording.done.returncode == 0, recording.done.stderr
    median = {}
    for rank in (0, 1):
        steps = [row for row in recording.rows("step") if row["rank"] == rank and row["kind"] != "eval"]
        assert len(steps) == 20
        for name in ("forward_ns", "backward_ns"):
            median[rank, name] = sorted(row[name] for row in divided(steps))[10]
    slept = 4 * 30e6
    assert median[1, "forward_ns"] > slept
    assert median[0, "backward_ns"] > median[1, "backward_ns"] + slept / 2


TUNED = '''"""A dataset that waits, and a loader without workers: `python train.py LIBRARY`."""

import sys
import time

import loader_kinds
import numpy as np

LIBRARY = loader_kinds.of(sys.argv[1])


class Rows(LIBRARY.Dataset):
    def __getitem__(self, index):
        time.sleep(0.03)
        return np.full(8, index % 5, np.float32), np.int32(index % 2)

    def __len__(self):
        return 4 * 12


def stack(rows):
    return [np.stack(column) for column in zip(*rows, strict=True)]


step = LIBRARY.trainer()
loader = LIBRARY.DataLoader(Rows(), batch_size=4, collate_fn=stack)
for epoch in range(2):
    for x, y in loader:
        step(x, y)
        time.sleep(0.08)
'''


@pytest.mark.slow
@pytest.mark.measures
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_tuning_proves_more_workers_and_writes_them_into_the_call(pipeprof_in, library):
    """Each batch of the unchanged side waits 120 ms; two workers make two of them meanwhile, and a step takes 80 besides."""
    home = pipeprof_in("tune")
    for name in ("loader_kinds.py", "parts.py"):
        (home.folder / name).write_text((WORKLOADS / name).read_text(encoding="utf-8"), encoding="utf-8")
    (home.folder / "train.py").write_text(TUNED, encoding="utf-8")
    command = [home.python, "train.py", library]
    done = home.run("tune", "--budget", "30m", "-o", "tuned", "--format", "json", "--", *command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["verdict"], found["final"]["batches"]) == ("proven", "same"), done.stderr
    assert found["final"]["ratio"] > 1.3
    [setting] = found["settings"]["operators"]
    assert setting["of_loader"]
    assert found["patch"]["by_hand"] == []
    applied = subprocess.run(["git", "apply", "tuned/patch.diff"], cwd=home.folder, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr
    lasting = ", persistent_workers=True" if setting.get("persistent") else ""
    call = f"DataLoader(Rows(), batch_size=4, collate_fn=stack, num_workers={setting['workers']}{lasting})\n"
    assert call in (home.folder / "train.py").read_text(encoding="utf-8")
