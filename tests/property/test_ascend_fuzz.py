"""Damaged Ascend profiles: one error in words, or a run that opens. No traceback, no hang, nothing outside of RUN."""

import os
from pathlib import Path
from unittest import mock

import msgspec
import pyarrow as pa
import pytest
from ascend_files import (
    training_trace,
    ts_track,
    write_cluster,
    write_cpu,
    write_gpu,
    write_graph,
    write_output,
    write_prof,
)
from ascend_judge import files_of, judge, place
from damages import damage
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeprof.errors import SourceError
from pipeprof.read.ascend import rank as one_rank
from pipeprof.read.ascend.communication import read_cluster
from pipeprof.read.ascend.identify import SourceFile, identify, root_of
from pipeprof.read.ascend.out import Out
from pipeprof.read.ascend.reader import by_rank, first_times
from pipeprof.read.tables.share import Outcome, Share
from pipeprof.record.run import Manifest, Run, load
from pipeprof.record.schema import BY_NAME

pytestmark = pytest.mark.slow  # makes up its input

CASES = int(os.environ.get("PIPEPROF_FUZZ_CASES", "6000"))  # of each family, in the long test
WHOLE = 100  # cases for one whole import, which takes as long as some tens of others


def write_raw(folder):
    folder.mkdir(parents=True)
    folder.joinpath("training_trace.46.dev.tag.0.slice_0").write_bytes(training_trace())
    folder.joinpath("ts_track.data.1.slice_0").write_bytes(ts_track())
    folder.joinpath("Framework.host.vm.point.0.slice_0").write_text(
        "1 Default/A-op1\n2 Default/B-op2\n3 Default/AllReduce-op3\n"
    )
    folder.joinpath("Framework.host.vm.graph_desc_info.0.slice_0").write_text(
        'op_name:Default/A-op1 op_type:Cast input_id:0 input_format:ND input_data_type:40 input_shape:"2,3"\n'
    )
    folder.joinpath("Framework.host.vm.task_desc_info.0.slice_0").write_text("Default/A-op1 1 2 3\n")
    folder.joinpath("DATA_PREPROCESS.dev.AICPU.0.slice_0").write_text(
        "[x] Node:GetNext, Run tart:154907895189, Run end:154907895707, dispatchTime=132 us, totalTime=888 us.\0"
        "[y] Node:Cast, Run tart:154907895189, Run end:154907895707\0Thread[ 1] task end, dispatchTime=1 us, totalTime=2 us.\0"
    )
    return folder


MAKERS = {
    "graph": write_graph, "output": write_output, "prof": write_prof, "cpu": write_cpu, "raw": write_raw,
    "gpu": write_gpu, "cluster": write_cluster,
}  # fmt: skip
normal = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


class Sink(Out):
    """Tables that are put together and checked, and not written."""

    def __init__(self, *given):
        super().__init__(*given)
        self._written = {}

    def _append(self, table, columns):
        length = len(next(iter(columns.values())))
        fields = BY_NAME[table].arrow()
        arrays = [columns.get(field.name, pa.nulls(length, field.type)) for field in fields]
        pa.Table.from_arrays(arrays, schema=fields).validate()
        self._written[table] = self._written.get(table, 0) + length

    def total(self, table):
        return len(self.rows.get(table, ())) + self._written.get(table, 0)

    @property
    def counts(self):
        return {table: self.total(table) for table in {*self.rows, *self._written} if self.total(table)}


def read_all(paths):
    """What an import does with files, up to writing; returns how many rows there are, and checks every word."""
    run = Run(Path("/nonexistent"), Manifest(run_id="", started_at="", pipeprof_version=""))
    found = [item for item in map(one_kind, paths) if item is not None]
    try:
        ranks = by_rank(found, run.manifest)
    except SourceError:
        ranks = {}
    of_all, _ = read_cluster(found, {}, run.manifest)
    rows = 0
    for rank in ranks.keys() | of_all.keys():
        captures = ranks.get(rank, [])
        given = [{kind: [str(path) for path in some] for kind, some in files.items()} for files in captures]
        firsts = first_times(captures[:1])
        with mock.patch.object(one_rank, "Out", Sink):
            outcome = one_rank.read_rank(
                Share(one_rank.__name__, rank, given, firsts, of_all.get(rank, {})), run, lambda _text: None
            )
        rows += sum(outcome.counts.values())
        assert all("\n" not in words for said in (outcome.notes, outcome.damage) for words, _ in said)
        assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome).rank == rank
        assert all(-(2**63) <= edge < 2**63 for edges in (outcome.first, outcome.last) for edge in edges.values())
    return rows


def one_kind(path):
    try:
        found = identify(path)
        return found if found is None else SourceFile(path, found.kind, found.rank, root_of(path))
    except SourceError as error:
        assert "\n" not in error.message  # noqa: PT017
        return None


def one_whole_case(kind, seed):
    with place() as folder:
        MAKERS[kind](folder / "raw")
        files = files_of(folder / "raw")
        path = files[seed % len(files)]
        path.write_bytes(damage(path.read_bytes(), seed))
        judge(folder)


@pytest.mark.parametrize("kind", MAKERS)
def test_undamaged_files_are_complete(kind):
    with place() as folder:
        MAKERS[kind](folder / "raw")
        assert judge(folder) == "complete"
        assert read_all(files_of(folder / "raw")) == sum(load(folder / "run").manifest.tables.values())


@pytest.mark.parametrize("kind", MAKERS)
@normal
@given(seed=st.integers(0, 2**40))
@example(seed=0)
def test_any_damage_is_an_error_in_words_or_a_run(kind, seed):
    one_whole_case(kind, seed)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", MAKERS)
def test_many_damages_of_each_family(kind):
    """Each case reads one damaged file alone, every tenth all of them; some are whole imports."""
    with place() as folder:
        files = files_of(MAKERS[kind](folder / "raw"))
        sound = {path: path.read_bytes() for path in files}
        for seed in range(CASES):
            path = files[seed % len(files)]
            path.write_bytes(damage(sound[path], seed))
            try:
                read_all(files if seed % 10 == 0 else [path])
            except BaseException:
                print(f"{kind}: seed {seed}, file {path.name}")
                raise
            path.write_bytes(sound[path])
    for seed in range(CASES // WHOLE):
        one_whole_case(kind, seed)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_may_end_anywhere_and_may_be_empty(kind):
    for part in (0.0, 0.01, 0.5, 0.99):
        with place() as folder:
            MAKERS[kind](folder / "raw")
            for path in files_of(folder / "raw"):
                data = path.read_bytes()
                path.write_bytes(data[: int(len(data) * part)])
            judge(folder)
