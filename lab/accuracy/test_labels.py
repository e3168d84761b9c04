"""Labels of pipelines whose loads can be added up in the head, and the parts of the scorer."""

import tarfile

import pytest
from archive import pack, unpack
from designed import chain, designed, find, two
from drawn import drawn
from labels import label, loads, poll_floor_ms
from pipelines import Batch, Branch, Consumer, Map, Source, from_json, py, sort, to_json, wait
from run_files import write as write_table
from score import Answer, Scored, answer_of, summary, wilson
from sink import CASES, simulate, write
from truncate import first_steps

from pipeprof.read.minddata import read_folder
from pipeprof.record import store
from pipeprof.record.run import Manifest, Run


def test_the_slowest_stage_per_batch_is_the_bottleneck():
    found = label(chain("a", wait(1), Map("slow", sort(4)), batch=Batch(8), consumer=Consumer(ms=6)))
    assert (found.bottleneck, found.kind, found.accepted) == ("slow", "cpu", ("slow",))
    assert found.batch_ms == pytest.approx(32, rel=0.05)


def test_workers_divide_the_load():
    assert label(chain("a", wait(3), Map("many", wait(4), 2))).bottleneck == "source"


def test_a_filter_multiplies_the_load_below_it():
    assert label(chain("a", wait(1), keep=4, maps=(Map("after", wait(2)),))).bottleneck == "source"


def test_python_of_one_process_shares_an_interpreter():
    found = label(chain("a", wait(4), Map("lesser", py(2)), Map("greater", py(3)), consumer=Consumer(ms=1)))
    assert (found.bottleneck, found.kind, found.accepted) == ("greater", "gil", ("greater",))
    apart = label(chain("a", wait(4), Map("lesser", py(2), 1, processes=True), Map("greater", py(3))))
    assert apart.bottleneck == "source"


def test_two_threads_of_python_are_limited_by_the_interpreter():
    found = label(chain("a", wait(2), Map("slow", py(4), 2)))
    assert (found.bottleneck, found.kind) == ("slow", "gil")
    assert found.batch_ms == pytest.approx(32, rel=0.05)


def test_the_poll_law():
    assert poll_floor_ms(2, 16, processes=False) == 100 / 32
    assert poll_floor_ms(2, 64, processes=False) == 100 / 32
    assert poll_floor_ms(2, 4, processes=True) == 100 / 8
    assert poll_floor_ms(4, 1, processes=True) == 100 / 8


def test_a_polled_source_is_slow_only_when_it_is_the_slowest():
    fast_loop = chain("a", wait(2), workers=2, consumer=Consumer(ms=2))
    assert (label(fast_loop).bottleneck, label(fast_loop).kind) == ("source", "poll")
    slow_loop = chain("a", wait(2), workers=2, consumer=Consumer(ms=60))
    assert label(slow_loop).bottleneck == "consumer"
    with pytest.raises(ValueError, match="open"):
        label(chain("a", wait(2), workers=2, consumer=Consumer(ms=9)))


def test_near_ties_accept_both():
    assert label(find("tie_maps")).accepted == ("late", "early")
    assert label(find("apart_maps")).accepted == ("early",)


def test_branches_of_a_concatenation_are_judged_one_after_the_other():
    slow = Branch(Source("right", work=wait(4)))
    assert label(two("a", "concat", Branch(Source("left")), slow)).bottleneck == "right"
    with pytest.raises(ValueError, match="dominant"):
        label(two("a", "concat", Branch(Source("left", work=wait(3.9))), slow))


def test_designed_pipelines_have_clear_labels_and_names_of_their_own():
    pipelines = designed()
    assert len({one.name for one in pipelines}) == len(pipelines)
    for one in pipelines:
        assert label(one).margin >= 1.2 or one.name.startswith("tie_"), one.name
        names = [load.stage for load in loads(one)]
        assert len(set(names)) == len(names), one.name


def test_a_slow_loop_is_the_label_of_enough_pipelines():
    assert sum(label(one).accepted == ("consumer",) for one in designed()) >= 15


def test_pipelines_survive_json():
    for one in [*designed(), *drawn(1, 20)]:
        assert from_json(to_json(one)) == one


def test_the_same_seed_draws_the_same_pipelines():
    assert drawn(5, 12) == drawn(5, 12)
    assert drawn(5, 12) != drawn(6, 12)
    for one in drawn(5, 12):
        found = label(one)
        assert found.margin >= 1.3 or len(found.accepted) == 2


def diagnosis(verdict, op_id=None, candidates=()):
    return {"verdict": verdict, "op_id": op_id, "candidates": list(candidates), "kind": None, "confidence": "high"}


def test_answers_are_stages_best_first():
    stages = {0: "batch", 1: "slow"}
    assert answer_of(diagnosis("input_bound", 1, [1, 0]), stages).stages == ["slow", "batch"]
    assert answer_of(diagnosis("consumer_bound", None, [1]), stages).stages == ["consumer", "slow"]
    assert answer_of(diagnosis("balanced", 1, [1, -1]), stages).stages == ["slow", "consumer"]
    assert answer_of(diagnosis("not_measured"), stages).stages == []
    assert answer_of(diagnosis("input_bound", 7), stages).stages == ["op 7"]


def scored(accepted, stages, verdict="input_bound", kind=None, said=None):
    answer = Answer(verdict, stages, said, "high")
    return Scored("a", None, accepted[0], kind, accepted, [kind] if kind else [], answer, answer, {"drop": "slow"})


def test_the_summary_counts():
    rows = [
        scored(["slow"], ["slow"], kind="wait", said="wait"),
        scored(["slow"], ["batch", "slow"], kind="cpu", said="wait"),
        scored(["consumer"], ["slow"]),
        scored(["consumer"], ["consumer"], "consumer_bound"),
    ]
    found = summary(rows)
    counts = {name: (found[name]["right"], found[name]["of"]) for name in ("top1", "top2", "kind", "false_input_bound")}
    assert counts == {"top1": (2, 4), "top2": (3, 4), "kind": (1, 2), "false_input_bound": (1, 2)}
    assert found["theirs"]["drop"]["right"] == 2


def test_wilson_intervals():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(95, 100)
    assert (round(low, 3), round(high, 3)) == (0.888, 0.978)


@pytest.fixture
def run_of(tmp_path):
    """`run_of(steps)` writes a run of so many steps of 10 ns."""

    def made(steps):
        run = Run(tmp_path / "run", Manifest(run_id="x", started_at="2026-01-01T00:00:00Z", pipeprof_version="0"))
        run.path.mkdir()
        numbers = range(steps)
        starts, ids = [10 * n for n in numbers], [0] * steps
        write_table(run, "step", step=numbers, kind=["train"] * steps, start_ns=starts, end_ns=[at + 10 for at in starts],
                    pipeline_id=ids, in_window=[False] * steps)  # fmt: skip
        write_table(run, "fetch", pipeline_id=ids, fetch=numbers, start_ns=starts, wait_ns=[3] * steps)
        write_table(run, "pipeline", pipeline_id=[0], role=["train"], created_ns=[0], closed_ns=[10 * steps])
        write_table(run, "pipeline_op", pipeline_id=[0], op_id=[0], op_type=["BatchOp"])
        write_table(run, "queue", pipeline_id=ids, op_id=ids, t_ns=[7 * n for n in numbers], depth=[1] * steps,
                    capacity=[4] * steps)  # fmt: skip
        write_table(run, "stage", stage=["steady"], start_ns=[10], dur_ns=[10 * steps - 10])
        run.save()
        return run

    return made


def test_first_steps_ends_every_table_there(run_of):
    run = run_of(20)
    first_steps(run, 10)
    rows = {table: store.read(run, table).to_pylist() for table in ("step", "fetch", "queue", "stage", "pipeline")}
    assert [len(rows[table]) for table in ("step", "fetch", "queue")] == [10, 10, 15]
    assert rows["stage"][0]["dur_ns"] == 90
    assert rows["pipeline"][0]["closed_ns"] is None
    assert len(store.read(run, "pipeline_op")) == 1


def test_first_steps_leaves_a_short_run_alone(run_of):
    run = run_of(10)
    first_steps(run, 10)
    assert len(store.read(run, "queue")) == 10


def test_archives_are_the_same_bytes_and_hold_the_same_rows(run_of, tmp_path):
    run = run_of(20)
    sizes = [pack(run.path, tmp_path / name) for name in ("a.tar.xz", "b.tar.xz")]
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    assert sizes[0] < 40 * 1024
    with tarfile.open(tmp_path / "a.tar.xz") as file:
        assert {entry.mtime for entry in file.getmembers()} == {0}
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    before = store.read(run, "queue").to_pylist()
    assert store.read(type(run)(tmp_path / "out", run.manifest), "queue").to_pylist() == before


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_an_archive_whose_files_would_lie_elsewhere_is_refused(tmp_path, name):
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as file:
        file.addfile(tarfile.TarInfo(name))
    with pytest.raises(ValueError, match="would lie elsewhere"):
        unpack(tmp_path / "a.tar.xz", tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.xz"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_simulated_sink_mode(case, tmp_path):
    times = simulate(case)
    device = times.done[-1]
    rate = (len(device) - 100) / (device[-1] - device[99])
    assert 1 / rate == pytest.approx(max(case.ms), rel=0.03)
    write(case, tmp_path)
    ops = {op.op_id: op for op in read_folder(tmp_path).ops}
    late = {op_id: op.depths[len(op.depths) // 4 :] for op_id, op in ops.items() if op.depths}
    fill = {op_id: sum(depths) / len(depths) / 16 for op_id, depths in late.items()}
    if case.op_id in fill:
        assert fill[case.op_id] < 0.5
    if case.label != "data_processing":
        assert min(fill.values()) > 0.5
