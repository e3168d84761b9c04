"""Notes are stored as codes with values and worded where they are shown."""

import json
import re
from pathlib import Path

import pytest
from baseline_made import made, save

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


def test_codes_are_stored_and_sentences_shown(tmp_path, make_run):
    measures, second = made(), note("several_revisions")
    measures.notes = [note("failed_left_out", failed=1, reps=3, run="r")]
    assert unique([*measures.notes, second] * 2) == [*measures.notes, second]
    where = save(tmp_path, measures).where
    assert json.loads(Path(where, POINTER).read_text())["note_facts"] == measures.notes
    document, again = baseline.load_whole(where)
    assert again.notes == measures.notes
    assert one(document, again)["notes"] == ["1 of 3 repetitions of `r` failed: left out"]
    assert "note: 1 of 3 repetitions" in Path(where, "summary.md").read_text()
    run = make_run({"step": []})
    run.manifest.decide("failed", note("exit_code", exit_code=3))
    run.save()
    stored = json.loads((run.path / "run.json").read_text())
    assert stored["reason_facts"] == {"code": "exit_code", "exit_code": 3}
    assert load(run.path).manifest.reason == "the command exited with code 3"
