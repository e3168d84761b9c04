"""Notes are stored as codes with values and worded where they are shown."""

import json
import re
from pathlib import Path

import pytest
from baseline_made import made

import pipeprof
from pipeprof.record import baseline
from pipeprof.record.baseline_files import POINTER
from pipeprof.record.note import WORDS, note, sentence, unique
from pipeprof.record.run import load
from pipeprof.report.baselines import one

ROOT = Path(pipeprof.__file__).parent


def test_every_code_that_is_stored_has_words_and_every_word_a_code():
    rooms = [*(ROOT / "read").rglob("*.py"), *(ROOT / "record").rglob("*.py"), ROOT / "query" / "measure.py",
             ROOT / "experiment" / "repetition.py"]  # fmt: skip
    written = {code for path in rooms for code in re.findall(r'\bnote\("(\w+)"', path.read_text("utf-8"))}
    assert written == set(WORDS)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (note("exit_code", exit_code=3), "the command exited with code 3"),
        (note("rank_lost", pid=7, rank=1, missing_steps_s=0.91, missing_queue_s=2.2),
         ("process 7 (rank 1) ended without its exit handlers; at most the last 1.0 s of steps and 3 s of queue samples "
         "are missing")),
        (note("killed", who="launcher", missing_steps_s=1, missing_queue_s=None),
         ("the launcher was killed; what had been written was recovered; at most the last 1.0 s of steps are missing, and "
         "all queue samples")),
        (note("run_state", run="r", state="failed", reason=note("signal", signal="SIGKILL")),
         "`r` is failed: the command was ended by SIGKILL"),
        (note("run_state", run="r", state="partial", reason=None), "`r` is partial: no reason is known"),
        (note("from_tomorrow", size=3), "from_tomorrow: size 3"),
        (note("exit_code"), "exit_code"),
        (note(["x"]), "['x']"),
        (note("run_state", run="r", state="failed", reason=3), "run_state: run r, state failed, reason 3"),
        (note("signal", missing_steps_s="x"), "signal: missing_steps_s x"),
    ],
)  # fmt: skip
def test_a_note_in_words(stored, said):
    assert sentence(stored) == said


def test_the_same_note_is_kept_once():
    first, second = note("slowed_down"), note("several_revisions")
    assert unique([first, second, first, second]) == [first, second]


def test_a_baseline_stores_codes_and_shows_sentences(tmp_path):
    measures = made()
    measures.notes = [note("failed_left_out", failed=1, reps=3, run="r")]
    saved = baseline.save(measures, str(tmp_path), "w")
    stored = json.loads(Path(saved.where, POINTER).read_text())
    assert stored["note_facts"] == measures.notes
    document, again = baseline.load_whole(saved.where)
    assert again.notes == measures.notes
    assert one(document, again)["notes"] == ["1 of 3 repetitions of `r` failed: left out"]
    assert "note: 1 of 3 repetitions" in Path(saved.where, "summary.md").read_text()


def test_a_run_stores_why_as_a_code(make_run):
    run = make_run({"step": []})
    run.manifest.decide("failed", note("exit_code", exit_code=3))
    run.save()
    stored = json.loads((run.path / "run.json").read_text())
    assert stored["reason_facts"] == {"code": "exit_code", "exit_code": 3}
    assert load(run.path).manifest.reason == "the command exited with code 3"
