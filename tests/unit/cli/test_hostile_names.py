"""Names that a terminal, a log, a renderer or a spreadsheet would obey, through every verb in every format it has."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import click
import hostile
import pytest
from comparisons import hostile as hostile_comparison
from hostile import MANY, NAMES
from once import reports_made_once

from pipeprof.cli import cli
from pipeprof.cli.render import forms
from pipeprof.cli.verbs import VERBS
from pipeprof.record.note import note
from pipeprof.record.run import Failure, NotMeasured, Rank, Rep, Warn

pytestmark = pytest.mark.slow  # every verb in every format

MS = 1_000_000
CHECKS = {
    "terminal": hostile.check_log, "json": hostile.check_json, "csv": hostile.check_csv, "markdown": hostile.check_markdown,
    "html": hostile.check_html, "junit": hostile.check_xml, "svg": hostile.check_xml,
    "github-summary": hostile.check_markdown, "github-comment": hostile.check_markdown,
    "github-annotations": hostile.check_annotations, "trace": hostile.check_shown_json,
    "env": hostile.check_log, "args": hostile.check_log, "names": hostile.check_log,
}  # fmt: skip
FORMS = ("terminal", "html", "markdown", "json")
# Verb, format, and the words that ask for it: `{run}` and others are made below.
CASES = [
    ("report", "terminal", "report {run}"),
    ("report", "terminal", "report {run} --full"),
    ("report", "terminal", "report {failed}"),
    *(("report", form, f"report {{run}} --format {form} --top 200") for form in ("html", "markdown", "json")),
    *(("report", form, f"report {{failed}} --format {form}") for form in ("html", "markdown", "json")),
    *(("ops", form, f"ops {{run}} --top 0 --format {form}") for form in (*FORMS, "csv")),
    *(("ops", form, f"ops {{run}} --top 0 --group-by {by} --format {form}")
      for by in ("name", "shape", "stack", "scope") for form in ("terminal", "csv", "markdown", "html")),
    *(("ops", form, f"ops {{run}} --top 0 --print-only host --format {form}") for form in (*FORMS, "csv")),
    ("ops", "names", "ops {run} --top 0 --print-only host --dump-only-opr"),
    ("ops", "parquet", "ops {run} --top 0 --format parquet -o {out}"),
    *(("memory", form, f"memory {{run}} --top 0 --format {form}") for form in FORMS),
    ("memory", "svg", "memory {run} --blocks 0 --svg {out}"),
    ("timeline", "trace", "timeline {run} -o {out}.json"),
    *(("stacks", "trace", f"stacks {{run}} -o {{out}}.json --by {by}") for by in ("stack", "scope")),
    *(("stacks", "folded", f"stacks {{run}} -o {{out}} --by {by}") for by in ("stack", "scope")),
    *(("sql", form, f"sql {{run}} {{select}} --format {form}") for form in ("terminal", "csv", "json")),
    *(("runs", form, f"runs {{folder}} --format {form}") for form in (*FORMS, "csv")),
    *(("fleet", form, f"fleet {{folder}} --format {form}") for form in FORMS),
    *(("fleet", form, f"fleet {{folder}} --sql {{runs}} --format {form}") for form in ("terminal", "csv", "json")),
    *(("status", form, f"status {{run}} --stacks --format {form}") for form in FORMS),
    *(("top", form, f"top {{run}} --once --format {form}") for form in ("terminal", "json")),
    *(("verify", form, f"verify {{run}} --format {form}") for form in FORMS),
    *(("compare", form, f"compare {{run}} {{other}} --format {form}") for form in ("terminal", "json", "markdown", "html", "junit")),
    *(("render", form, f"render {{comparison}} --to {form}") for form in
      ("markdown", "html", "junit", "github-summary", "github-comment", "github-annotations")),
    *(("sweep", form, f"sweep --table {{table}} --format {form}") for form in ("terminal", "json", "markdown", "html", "csv")),
    *(("sweep", form, f"sweep --table {{table}} --export {form}") for form in ("env", "args")),
    *(("baseline write", form, f"baseline write {{run}} --workload w --root {{out}} --format {form}") for form in ("terminal", "json")),
    *((f"baseline {verb}", form, f"baseline {verb} --root {{baselines}} --format {form}")
      for verb in ("list", "show", "check") for form in FORMS),
    *(("baseline show", form, f"baseline show --history --root {{baselines}} --format {form}") for form in FORMS),
    ("baseline drop", "", "baseline drop --workload w --root {baselines}"),
    ("import", "", "import {trace} -o {out}"),
    ("collect", "", "collect -o {out} -- true {names}"),
    *(("ab", form, f"ab --new-env X=1 --format {form} -- true") for form in ("terminal", "json", "markdown", "html", "junit")),
    *(("whatif", form, f"whatif {{run}} --op 1 --workers 2 --format {form} -- true") for form in FORMS),
    *(("headspace", form, f"headspace --format {form} -- true") for form in FORMS),
    *(("history", form, f"history w --root {{baselines}} --format {form}") for form in ("html", "json")),
    *(("history", form, f"history {{changed}} --format {form}") for form in FORMS),
    *(("bisect", form, f"bisect a b --format {form} -- true") for form in FORMS),
    *(("tune", form, f"tune -o {{out}} --format {form} -- true") for form in FORMS),
    *(("qualify", form, f"qualify --format {form} -- true") for form in FORMS),
]  # fmt: skip
SAYS_NO_NAME = (
    "baseline write", "baseline list", "baseline check", "baseline drop", "import", "collect", "verify", "headspace",
)  # fmt: skip
OWN_WORDS = {
    "completion": "a script of our own", "demo": "the training is our own", "compact": "two numbers of ours",
    "push": "the URL that was given, and two numbers",
    "serve": "an address of our own; its pages: tests/unit/serve",
}  # fmt: skip


def every_verb(group=cli, before=()):
    """The verbs by their whole name, those of groups too."""
    context = click.Context(group)
    for name in VERBS if group is cli else group.list_commands(context):
        verb = group.get_command(context, name)
        if isinstance(verb, click.Group):
            yield from every_verb(verb, (*before, name))
        else:
            yield " ".join((*before, name)), verb


def every_form():
    """Each verb with each of its formats; "" for one that has none."""
    for name, verb in every_verb():
        found = [choice for param in verb.params if param.name in ("form", "export") and hasattr(param.type, "choices")
                 for choice in param.type.choices]  # fmt: skip
        found += forms() if name == "render" else ()
        yield from ((name, form) for form in found or [""])


def test_every_verb_in_every_format_is_among_the_cases():
    known = {(verb, form) for verb, form, _ in CASES}
    known |= {(verb, "") for verb, form, _ in CASES if form not in ("json", "csv", "markdown")}
    missing = [(verb, form) for verb, form in every_form() if (verb, form) not in known and verb not in OWN_WORDS]
    assert not missing, "put them into CASES, with a check of what nobody may obey in them"
    assert set(OWN_WORDS) < set(VERBS)
    further = {"names", "parquet", "svg", "trace", "folded"}
    assert {form for _, form, _ in CASES} <= further | {form for _, form in every_form()}


def test_the_corpus_is_large_and_hostile():
    assert len(set(NAMES)) >= 70
    with pytest.raises(AssertionError):
        hostile.check_log(NAMES[0])
    for check in (hostile.check_csv, hostile.check_markdown, hostile.check_html, hostile.check_annotations):
        with pytest.raises(AssertionError):
            check("=1+1,[a](http://x.y) <script>\n")


def hostile_tables(length=10 * MS):
    ops = range(len(NAMES))
    stored = NAMES
    busy = (length - 4 * MS) // len(NAMES)  # operators fill what is left of the step beside the wait, which leads
    pipeline = {"pipeline_id": 0}
    steps = [
        {"step": n, "kind_step": n, "kind": "train", "epoch": 0, "pipeline_id": 0, "start_ns": n * length,
         "fp_ns": n * length + 4 * MS, "end_ns": (n + 1) * length, "data_wait_ns": 4 * MS, "fetch_wait_ns": 4 * MS,
         "fp_source": "fetch", "in_window": n > 7, "updates": 1}
        for n in range(12)
    ]  # fmt: skip
    return {
        "step": steps,
        "fetch": [{**pipeline, "fetch": n, "step": n, "start_ns": n * length, "wait_ns": 4 * MS, "side": "iterator"} for n in range(12)],
        "pipeline": [{**pipeline, "pipeline_key": "k", "role": "train", "site": MANY, "created_ns": 0, "ready_ns": 1, "batch_size": 4,
                      "queues": "recorded"}],
        "pipeline_op": [{**pipeline, "op_id": n, "op_type": "MapOp" if n else "BatchOp", "name": name, "workers": 2, "capacity": 8,
                         "inlined": False, "site": name, "code": name, "is_python": True, "node": n} for n, name in enumerate(stored)],
        "pipeline_edge": [{**pipeline, "producer_id": n + 1, "consumer_id": n} for n in ops[:-1]],
        "queue": [{**pipeline, "op_id": op, "t_ns": n * MS, "depth": 0 if op < 9 else 8, "capacity": 8} for op in ops for n in range(1, 60)],
        "op_info": [{"op_id": n, "name": name, "type": name, "scope": name, "phase": "forward", "device": name, "stack_id": n,
                     "in_shapes": name, "out_shapes": name, "source_id": name, "in_types": name} for n, name in enumerate(stored)],
        "op": [{"op_id": n, "step": step, "start_ns": step * length + 4 * MS + n * busy, "dur_ns": busy, "self_ns": busy, "track": stored[n],
                "side": "host", "exec_id": step * 1000 + n, "memory_bytes": 5, "self_memory_bytes": 5} for step in (8, 9) for n in ops],
        "stack": [{"stack_id": n, "frame": name} for n, name in enumerate(stored)],
        "span": [{"track": name, "category": name, "name": name, "start_ns": n, "dur_ns": 5} for n, name in enumerate(stored)],
        "collective": [{"name": name, "kind": name, "group_name": name, "track": name, "start_ns": n, "dur_ns": 5, "bytes": 1}
                       for n, name in enumerate(stored)],
        "flow": [{"flow_id": name, "category": name, "name": name, "side": "start", "t_ns": n, "track": name} for n, name in enumerate(stored)],
        "counter": [{"track": name, "name": name, "t_ns": n, "value": 1.0} for n, name in enumerate(stored)],
        "process": [{"pid": n, "parent_pid": 1, "part": "child", "command": name, "what": name, "site": name, "library": name,
                     "first_ns": 0, "last_ns": 9} for n, name in enumerate(stored, 2)],
        "allocation": [{"address": n * 100, "bytes": 50, "produced_ns": n, "released_ns": None, "op_id": n} for n in ops],
        "memory": [{"t_ns": n, "device": name, "name": name, "pid": 1, "allocated_bytes": 1 << 20} for n, name in enumerate(stored)],
        "stage": [{"stage": name, "start_ns": n, "dur_ns": 5} for n, name in enumerate(stored)],
    }  # fmt: skip


def written(make_run, *, failed=False, length=10 * MS):
    run = make_run(hostile_tables(length))
    manifest = run.manifest
    manifest.command, manifest.workdir, manifest.job = ["python", *NAMES[:-1]], MANY, MANY
    manifest.decide("failed" if failed else "complete", note("block_ended", error=MANY) if failed else None)
    manifest.fingerprint = {
        "cpu_model": f"{MANY} {length if failed else ''}", "cpu_cores": 2, "host": MANY, "mindspore": MANY, "python": MANY, "device": MANY,
        "mode": MANY, "environment": {"GLOG_v": MANY},
    }  # fmt: skip
    manifest.git = {"revision": MANY, "dirty": True}
    manifest.options = {"op": NAMES}
    manifest.warnings = [Warn(code=name or "x", message=name) for name in NAMES]
    manifest.not_measured = [NotMeasured(what=name, why=name) for name in NAMES]
    ranks = [Rank(rank=0, pid=1, host=MANY, zero_realtime_ns=0, zero_monotonic_ns=0, step_evidence=MANY)]
    failure = Failure(pid=1, error=MANY, place=MANY, code=MANY, lines=NAMES) if failed else None
    code = 1 if failed else 0
    manifest.reps = [Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=0, exit_code=code, failure=failure, ranks=ranks)]
    run.save()
    return run


@pytest.fixture(scope="module")
def runs(make_shared_run):
    """Hostile runs in one folder, which the cases only read."""
    return {
        "run": written(make_shared_run), "other": written(make_shared_run, length=20 * MS),
        "failed": written(make_shared_run, failed=True),
    }  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _once():
    with reports_made_once():
        yield


@pytest.fixture(scope="module")
def stored_baselines(runs, tmp_path_factory):
    """A folder of baselines, one of them of a hostile run; whoever changes it takes a copy."""
    root = tmp_path_factory.mktemp("stored") / "baselines"
    words = ["write", str(runs["run"].path), "--workload", "w", "--root", str(root)]
    done = subprocess.run([sys.executable, "-m", "pipeprof", "baseline", *words], capture_output=True, check=False)
    assert done.returncode == 0
    return root


def things(runs, folder, stored_baselines):
    """What the cases are about, by name; made when it is asked for."""
    made = {name: [str(run.path)] for name, run in runs.items()} | {"folder": [str(runs["run"].path.parent)]}

    names = [name.replace("\x00", "").encode("utf-8", "replace").decode() for name in NAMES]  # as files can hold them

    def comparison_file():
        content = hostile_comparison()
        content["metrics"] += [dict(content["metrics"][0], name=name, reason=name) for name in names]
        content["notes"] += names
        (folder / "compare.json").write_text(json.dumps(content), encoding="utf-8")
        return [str(folder / "compare.json")]

    def table():
        with (folder / "evil ::error::.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["table_id", "row_in_table", "variant", "options", "is_baseline", "inference_ms"])
            rows = [" ".join(names[:20]), *["base", *reversed(names)]]
            writer.writerows([rows[0], n, name, name, int(n == 0), 100 - n] for n, name in enumerate(rows[1:]))
        return [str(folder / "evil ::error::.csv")]

    def trace():
        events = [
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": n, "dur": 1, "args": {name: name}}
            for n, name in enumerate(NAMES)
        ]
        path = folder / "evil\x1b[31m::error::x.pt.trace.json"
        content = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}
        path.write_text(json.dumps(content), encoding="utf-8")
        return [str(path)]

    def baselines():
        return [str(shutil.copytree(stored_baselines, folder / "baselines"))]

    makers = {
        "comparison": comparison_file, "table": table, "trace": trace, "baselines": baselines, "out": lambda: [str(folder / "out")],
        "names": lambda: [os.fsdecode(name.replace("\x00", "").encode("utf-8", "surrogateescape" if "\udcff" in name else "replace"))
                          for name in NAMES],
        "select": lambda: ['SELECT name, name AS "=x::error::y\x1b[1m", [name] AS listed FROM op_info ORDER BY op_id'],
        "runs": lambda: ['SELECT *, run AS "=x::error::y\x1b[1m", [op_name] AS listed FROM fleet_run ORDER BY run'],
        "changed": lambda: ["changed"],
    }  # fmt: skip
    return lambda name: made[name] if name in made else made.setdefault(name, makers[name]())


@pytest.fixture
def no_runs(monkeypatch):
    """Verbs that run trainings give a result at once, in which every text is hostile."""
    from pipeprof.experiment import ab, base_revision_policy, headspace, history, whatif
    from pipeprof.experiment.bisect import search as bisect
    from pipeprof.experiment.qualify import rates as qualify
    from pipeprof.experiment.tune import search as tune
    from pipeprof.experiment.tune import state as tune_state
    from pipeprof.record.settings_file import OperatorSetting, Settings
    from pipeprof.report import status
    from pipeprof.report.words import waiting as words

    place = {"site": MANY, "function": MANY, "line": MANY, "stack": [MANY]}
    stuck = {"pid": 9, "for_s": 300.0, "op_type": "MapOp", "name": MANY, **place}
    waiting = {
        "rep": 0, "rank": 0, "pid": 42, "code": "script", "for_s": 12.0, "in_callback": False, "queue": None, "call": None,
        "missing": [], "stuck": [stuck], "queues": [{"op_type": MANY, "depth": 1, "capacity": 2}], **place,
    }  # fmt: skip
    ranks = [{**waiting, "text": words.sentence(waiting)}]
    looked = {"schema_version": 1, "run": {"path": MANY}, "state": "recording", "ranks": ranks}
    monkeypatch.setattr(status, "build", lambda _: looked)
    whole = hostile_comparison()
    side = {"reps": 8, "git": {"revision": MANY, "dirty": True}}
    side |= dict.fromkeys(("label", "kind", "workload", "created_at"), MANY)
    whole |= {"base": side, "new": side}
    whole["metrics"] += [dict(whole["metrics"][0], name=name, reason=name) for name in NAMES]
    whole["notes"] += NAMES
    op = {"op_id": 1, "op_type": MANY, "name": MANY, "node": 0}
    measured = {
        "decided": "above", "verdict": "faster", "ratio": 1.1, "low": 1.0, "high": 1.2, "interval": [1.0, 1.2], "speeds": [],
        "speeds_of": None, "pairs": 3, "stopped": "decided",
    }  # fmt: skip
    predicted = {"ratio": None, "low": None, "high": None, "reason": MANY, "basis": NAMES, "limited_by": None}
    pairs = {"measured": measured, "runs": [], "notes": NAMES, "op": op, "prediction": predicted, "error": None}
    pairs["change"] = {MANY: [MANY, 2]}
    rate = {"rate": 0.0, "low": 0.0, "high": 0.1, "sessions": 20, "verdicts": {MANY: 3}, "mean_repetitions": 3.0}
    pool = {"repetitions": 6, "rounds": 3, "seconds": 9.0, "seconds_per_repetition": 1.0, "spread": {MANY: 0.1}}
    qualified = {"pool": pool, "false_alarms": rate, "alpha": 0.01, "slow_downs": [], "sees": [], "notes": NAMES}
    commit = {"revision": MANY, "subject": MANY, "probability": 0.5, "runs": 3}
    bisected = {
        "verdict": "found", "exit_code": 0, "stopped": "budget", "metric": MANY, "probability": 0.99, "commit": commit, "range": [commit],
        "no_change_probability": 0.0, "ratio": 1.1, "candidates": [commit], "headline": MANY, "cause": None, "because": MANY,
        "compared": {"before": 5, "after": 5},
        "good": commit, "bad": commit, "commits": 3, "runs": 9, "cannot_be_measured": [commit],
        "session": {"seconds": 9.0, "folder": MANY},
    }  # fmt: skip
    monkeypatch.setattr(bisect, "run_bisect", lambda *_: bisected)
    around = {
        "good": MANY, "bad": MANY, "good_at": MANY, "bad_at": MANY, "same_revision": False, "count": 2, "uncommitted": True,
        "commits": [{"revision": MANY, "subject": name} for name in NAMES],
    }  # fmt: skip
    change = {
        "position": 1, "at": MANY, "revision": MANY, "ratio": 1.2, "before": 1.0, "after": 1.2, "points_before": 5, "points_after": 5,
        "p_value": 0.001, "range": around, "cause": None, "because": MANY,
    }  # fmt: skip
    point = {"value": 1.0, "at": MANY, "revision": MANY, "tag": MANY, "reps": 3, "label": MANY}
    ofs = {
        "workload": MANY, "metric": MANY, "unit": "", "machine": MANY, "conditions": MANY, "anchor": None, "enough": True,
        "median": 1.0, "points": [point, point], "changes": [change],
    }  # fmt: skip
    told = {
        "schema_version": 1, "source": MANY, "measurements": 2, "series": [ofs], "left_out": [{"path": MANY, "problem": MANY}],
        "conditions": [{"at": MANY, "differences": [{"name": MANY, "base": MANY, "new": MANY}]}],
    }  # fmt: skip
    real = history.history_of
    changed = lambda source, *rest, **how: told if source == "changed" else real(source, *rest, **how)  # noqa: E731
    monkeypatch.setattr(history, "history_of", changed)
    tuned = tune_state.TuneState(
        tune="abc", command=["python", *NAMES], started_at=MANY, ended="nothing_left", seen=[{"not_worth": [], "other_sites": [MANY]}],
        trials=[tune_state.Trial(
            key=name, what=[{"op": MANY, "op_id": 1, "name": name, "place": name, "change": {MANY: [MANY, name]}}],
            prediction={"ratio": None, "low": None, "high": None}, verdict="accepted", ratio=1.2, a=[1.0], b=[1.2], error=name,
            settings=Settings(operators=(OperatorSetting(node=1, op_type="MapOp", name=name, place=name, workers=2),)),
        ) for name in NAMES],
        final=tune_state.Final(a=[1.0], b=[1.2], verdict="improved", ratio=1.2, low=1.1, high=1.3, batches="same", p_value=0.9),
    )  # fmt: skip
    monkeypatch.setattr(tune, "run_tune", lambda wish, *_: (wish.folder.mkdir(exist_ok=True), (tuned, wish.folder))[1])
    monkeypatch.setattr(ab, "run_ab", lambda *_, **__: whole)
    monkeypatch.setattr(base_revision_policy, "judged_arms", lambda *_: SimpleNamespace(policy=None, trust=None))
    monkeypatch.setattr(whatif, "run_whatif", lambda *_: pairs)
    monkeypatch.setattr(headspace, "run_headspace", lambda *_: pairs)
    monkeypatch.setattr(qualify, "run_qualify", lambda *_: qualified)
    monkeypatch.setattr(qualify, "exit_code", lambda _: 0)


@pytest.mark.parametrize(("verb", "form", "words"), CASES, ids=[words for *_, words in CASES])
def test_nothing_obeys_a_name(verb, form, words, call, runs, tmp_path, no_runs, monkeypatch, stored_baselines):
    monkeypatch.chdir(tmp_path)
    thing = things(runs, tmp_path, stored_baselines)
    line = [part for word in words.split() for part in _filled(word, thing)]
    code, out, err = call(*line)
    assert code in (0, 1, 3, 4), err
    assert "Traceback" not in err
    hostile.check_log(err)
    if form == "parquet":
        import pyarrow.parquet as pq

        found = set(pq.read_table(tmp_path / "out").column("name").to_pylist())
        assert {name for name in NAMES if name.isprintable() and name} <= found
        return
    written_files = [path for path in tmp_path.glob("out*") if path.is_file()]
    if written_files:
        hostile.check_log(out)
        out = written_files[0].read_text(encoding="utf-8")
    if form == "folded":
        hostile.check_log(out)
        assert all(re.search(r" \d+$", row) for row in out.splitlines())
    else:
        CHECKS[form or "terminal"](out)
    if verb not in SAYS_NO_NAME:
        assert re.search("gr\u00f6\u00dfer|octocat|lines|x1b", out), f"the names are not there: {out} {err}"


def _filled(word, thing):
    found = re.fullmatch(r"\{(\w+)\}(.*)", word)
    if found is None:
        return [word]
    values = thing(found[1])
    return [values[0] + found[2]] if found[2] else values


def test_json_and_parquet_hold_the_true_names(call, runs):
    path = str(runs["run"].path)
    code, out, _ = call("ops", path, "--top", "0", "--print-only", "host", "--format", "json")
    assert code == 0
    names = [name.encode("utf-8", "surrogateescape") for name in NAMES if "\ud800" not in name]
    true = {name.decode("utf-8", "backslashreplace") for name in names}
    assert true <= set(_texts(json.loads(out)))


def _texts(value):
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)
