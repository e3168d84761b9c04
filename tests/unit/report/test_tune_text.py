"""The result of a tuning for people: what is proven, with figures, in 80 columns."""

import pytest
from documents import FINAL, PATCH, WHAT, trial
from documents import tuned as content

from pipeprof.report import document, table, tune_text
from pipeprof.report.sections import storage
from pipeprof.report.words import speedup

PROVEN = content("proven", FINAL, [trial("accepted")], patch=PATCH)
NO_PAIRS = FINAL | {"a": [], "b": [], "ratio": None, "verdict": None}
BROKE = FINAL | {"error": "it broke", "a": [], "b": [], "ratio": None}
RANDOM = FINAL | {"batches": "random", "why": "random operations draw other numbers in `Image`"}
CACHE = {"op_type": "MapOp", "op_id": 2, "name": "decode", "site": "train.py:9", "bytes": 2**20, "ratio": 1.66,
         "disk_ratio": 0.5, "changes": None}  # fmt: skip
EVALUATION = {"part": "evaluation", "detail": None, "cause": None, "share": 0.25}
HELPER = {"part": "child", "what": "spin", "command": "", "pid": 7, "processes": 1, "site": "train.py:3", "cores": 0.9,
          "training_cores": 1.0, "wait_cores": None}  # fmt: skip
ITERATED = {"op_id": 3, "op_type": "GeneratorOp", "name": "rows", "site": "train.py:4", "workers": 2, "low": 1.8,
            "high": 2.2}  # fmt: skip


def text_of(*found, width=400):
    return table.plain_text(lambda console: document.draw(console, tune_text.document(*found)), width)


def told(verdict, final=None, trials=(), **more):
    """The text of a tuning, as one line."""
    return " ".join(text_of(content(verdict, final, trials, **more)).split())


def paragraph(final=FINAL, trials=None, **more):
    return tune_text.pull_request(content("proven", final, trials or [trial("accepted")], **more))


def changed(change, node=1, **more):
    return [WHAT[0] | {"op": f"MapOp {node}", "op_id": node, "node": node, "change": change} | more]


def seen(**more):
    return [{"not_worth": [], "other_sites": [], "caches": [CACHE], "outside": [EVALUATION]} | more]


def with_cache(**more):
    return {"seen": seen(caches=[CACHE | more], outside=[])}


def failed(*sides):
    return [{"folder": "final", "side": side, "error": "signal 9", "steps": steps} for side, steps in sides]


def test_what_is_proven_comes_first_with_its_interval_and_the_change():
    text = text_of(PROVEN, ["patch.diff"], "tuned")
    assert text.startswith("proven: x1.90 (1.85 to 1.95) the speed of the original\n")
    for said in (
        "4 pairs of runs, in turn: 10.0 -> 19.0 steps/s",
        "the first batches are the same, in the same order",
        "MapOp 1 `rotate`: workers 1 -> 2",
        "  +a = a.map(f, num_parallel_workers=2)",
        "lib.py:7: num_parallel_workers=2 (its file is not below the working directory)",
        "train.py:8: num_parallel_workers=2 (the argument is computed: `args.workers`)",
        "note: train.py:9 makes operators of other pipelines, too",
        "Written into tuned: patch.diff",
        "pipeprof report tuned/look-0",
    ):
        assert said in text


EARLY = "pipelines that come later and share these lines were not seen"
ROWSIZE = {"operators": [{"node": 1, "max_rowsize": 5}]}
FIRST = [trial("unchecked", ratio=None, interval=None)]
TOLD = {
    "what was not timed is not called faster": ("not_judged", None, FIRST, {}, ["not measured"], ["faster"]),
    "by other batches": ("nothing_to_gain", None, [trial("other_data")], {}, ["faster with the same batches"], []),
    "no gain": ("nothing_to_gain", None, [trial("no_gain")], {}, ["makes this training faster"],
                ["with the same batches"]),
    "leave for the order": ("nothing_to_gain", None, (), {"seen": seen(permuting=[WHAT, WHAT])},
                            ["--allow-order would allow 2 more", "training faster with the same batches"], []),
    "order allowed": ("nothing_to_gain", None, (), {"seen": seen(permuting=[WHAT, WHAT]), "allow_order": True},
                      ["makes this training faster"], ["--allow-order", "with the same batches"]),
    "more time": ("undecided", None, [trial("undecided", stopped="budget")], {"ended": "budget", "lacks_time": True},
                  ["(1 min 01 s); the same command with --budget 3m or more", "over before the pairs decided"], []),
    "want of time": ("proven", FINAL, [trial("unproven", stopped="budget", saved=1.6)], {"patch": PATCH},
                     ["faster, but the whole set with it was not proven"], []),
    "want of time, memory": ("nothing_to_gain", None, [trial("unproven", stopped="budget", saved=1.6)],
                             {"goal": "memory"}, ["needs less, but the whole set with it was not proven"], []),
    "an endless interval": ("nothing_to_gain", None, [trial("other_data", interval=[0.002, 855.0])], {},
                            ["--allow-random compares all but those", "x1.90 in 2 pairs"], []),
    "random allowed": ("nothing_to_gain", None, [trial("other_data")], {"allow_random": True}, [], ["--allow-random"]),
    "random batches": ("not_judged", FINAL | {"batches": "other"}, (), {}, ["--allow-random"], []),
    "whole runs": ("proven", FINAL, [trial("accepted")], {"patch": PATCH}, [],
                   [EARLY, "runs that failed", "max_rowsize"]),
    "runs that ended early": ("proven", FINAL, [trial("accepted")], {"patch": PATCH, "stop_after": 1500},
                              [EARLY, "each run of a pair ended after 1,500 training steps"], []),
    "runs that failed": ("proven", FINAL, [trial("accepted")], {"failed_runs": failed(("a", 0), ("b", 1))},
                         ["runs that failed: 1 unchanged, 1 changed (the last: signal 9)"], []),
    "what MindSpore will remove": ("proven", FINAL, (), {"patch": PATCH, "settings": ROWSIZE},
                                   ["note: MindSpore 2.8 and later warn of max_rowsize"], []),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "final", "trials", "more", "holds", "lacks"), TOLD.values(), ids=TOLD)
def test_the_text_says_what_was_found_and_no_more(verdict, final, trials, more, holds, lacks):
    text = told(verdict, final, trials, **more)
    assert [said for said in holds if said not in text] == []
    assert [said for said in lacks if said in text] == []


BY_HAND = {
    "with its gain": ({"seen": seen()}, [
        "cache after MapOp 2 decode (train.py:9), 1.00 MiB: predicted x1.66 in memory, x0.50 on the same storage",
        "(25.0 % of the run, at most x1.33 for the whole run)"], []),
    "not where something is to be saved": ({"seen": seen(), "goal": "memory"}, [], ["by hand"]),
    "in front of what was not timed": (with_cache(untimed=True), ["1.00 MiB: at most x1.66 in memory"], []),
    "changes the data": (with_cache(changes="random"), ["changes the data: random"], []),
    "tried": (with_cache(tried=True), [], ["by hand"]),
    "too large": ({"seen": seen(caches=[CACHE | {"bytes": 3 * 2**30, "could_be": False}], epochs=1), "stop_after": 40},
                  ["more than the 2.00 GiB that are tried"], ["two epochs"]),  # it is not tried then, either
    "too short": ({"seen": seen(caches=[CACHE | {"could_be": True}], epochs=1)}, ["for two epochs or more)"], []),
    "cut short": ({"seen": seen(caches=[CACHE | {"could_be": True}], epochs=1), "stop_after": 40},
                  ["for two epochs or more, with --steps all)"], []),
    "a source that is iterated": ({"seen": seen(iterated=[ITERATED])}, [
        "GeneratorOp 3 rows (train.py:4), a generator or an iterator, for which MindSpore uses one worker",
        "with `__getitem__`, `__len__` and 2 workers in threads predicted x1.80 to x2.20"], []),
    "a process": ({"seen": seen(process=HELPER)},
                  ["the process `spin`, started at train.py:3, takes 0.9 cores", "no prediction"], []),
    "one that some wait for": ({"seen": seen(process=HELPER | {"wait_cores": 0.5})}, ["at most x1.50 without it"], []),
    "one that many wait for": ({"seen": seen(process=HELPER | {"wait_cores": 2.0})}, ["at most x1.90"], []),
    "one of unknown start": ({"seen": seen(process=HELPER | {"site": ""})},
                             ["the process `spin` takes 0.9 cores, and none is idle"], []),
}  # fmt: skip


@pytest.mark.parametrize(("more", "holds", "lacks"), BY_HAND.values(), ids=BY_HAND)
def test_what_is_to_be_changed_by_hand_stands_there_with_its_gain(more, holds, lacks):
    text = told("nothing_to_gain", **more)
    assert [said for said in holds if said not in text] == []
    assert [said for said in lacks if said in text] == []


@pytest.mark.parametrize(("batches", "changes", "holds"), [
    ("not_reproducible", None, True), ("random", None, True), ("other", None, True), ("same", None, False),
    ("other", "random", False),
])  # fmt: skip
def test_a_cache_of_rows_that_seem_random_says_what_it_would_do_to_them(batches, changes, holds):
    found = told("nothing_to_gain", None, [trial("unchecked", batches=batches)], **with_cache(changes=changes))
    assert ("gives every epoch the same ones" in found) is holds


@pytest.mark.parametrize(("different", "hinted"), [
    ({}, True), ({"error": "it failed"}, False), ({"batches": "other"}, False), ({"batches": "not_seen"}, True),
])  # fmt: skip
def test_what_cannot_be_compared_in_whole_epochs_may_be_taken_all_the_same(different, hinted):
    final = FINAL | {"batches": "not_reproducible"} | different
    hint = "nothing is recommended; --allow-unchecked takes it"
    kept = trial("accepted", what=changed({"cache": [None, 1 << 30]}))
    assert (hint in told("not_judged", final, [trial("accepted")])) == hinted
    assert hint not in told("not_judged", final, [trial("accepted")], allow_unchecked=True)
    assert hint not in told("not_judged", final, [kept])


@pytest.mark.parametrize(("change", "allowed", "helps"), [
    ({"workers": [1, 2]}, False, True), ({"workers": [1, 2]}, True, False), ({"cache": [None, 2**31]}, False, False),
    ({"maps_after": [0, 1]}, False, False),
])  # fmt: skip
def test_leave_is_only_named_where_it_was_not_given_and_helps(change, allowed, helps):
    tried = trial("unchecked", what=changed(change))
    text = text_of(content("not_judged", None, [tried], allow_unchecked=allowed, lacks_time=allowed))
    assert ("; --allow-unchecked takes it\n" in text) is helps
    assert text.startswith("not judged: what may be better hands out batches that cannot be compared")
    assert ("the same command with --budget 3m or more goes on" in text) is allowed
    text = text_of(content("undecided", None, [tried, trial("undecided")], allow_unchecked=allowed, lacks_time=True))
    assert ("in the time; --allow-unchecked takes what cannot be compared\n" in text) is helps


@pytest.mark.parametrize(("verdict", "final", "more", "begins"), [
    ("nothing_to_gain", None, {}, "nothing to gain"),
    ("undecided", None, {}, "undecided: the runs vary too much"),
    ("undecided", FINAL | {"verdict": "inconclusive"}, {}, "undecided: x1.90"),
    ("undecided", None, {"lacks_time": True}, "undecided: nothing was proven in the time"),
    ("undecided", NO_PAIRS, {"lacks_time": True}, "undecided: nothing was proven in the time"),
    ("undecided", NO_PAIRS, {}, "undecided: the runs vary too much"),
    ("not_faster", FINAL | {"verdict": "regressed", "ratio": 0.9}, {}, "not faster: x0.90"),
    ("not_judged", None, {}, "not judged: what may be better hands out batches that cannot be compared"),
    ("not_judged", None, {"trials": [trial("failed", ratio=None)]}, "not judged: every change that was tried failed\n"),
    ("not_judged", FINAL | {"batches": "other"}, {}, "not judged: the batches are not the same"),
    ("not_judged", FINAL | {"batches": "other", "why": "epoch 2 has others"}, {}, "not judged: epoch 2 has others"),
    ("not_judged", BROKE, {}, "not judged: it broke"),
    ("not_judged", BROKE | {"batches": "not_seen"}, {},
     "not judged: it broke; nothing is recommended\nevery allowed setting that may help"),
])  # fmt: skip
def test_what_is_not_proven_is_not_recommended(verdict, final, more, begins):
    found = content(verdict, final, **more)
    text = text_of(found)
    assert text.startswith(begins)
    assert tune_text.pull_request(found) == ""
    assert final in (None, NO_PAIRS) or "nothing is recommended" in text
    assert "no figure" not in text
    assert ("the same command with --budget" in text) is ("lacks_time" in more)


@pytest.mark.parametrize("verdict", tune_text.TRIALS)
def test_every_trial_is_listed_with_what_was_believed_and_what_came_out(verdict):
    text = told("nothing_to_gain", None, [trial(verdict, predicted_wrong=True, error="it broke")])
    assert "x1.70 to x2.10 x1.90 (1.80 to 2.00) in 2 pairs, outside the prediction" in text
    assert tune_text.TRIALS[verdict] in text


@pytest.mark.parametrize(("p_value", "looks", "holds"), [
    (0.9, [4], True), (0.9999, [4], False), (0.9, [], False), (None, [], False),
])  # fmt: skip
def test_an_undecided_proof_says_how_far_it_is_from_one(p_value, looks, holds):
    final = FINAL | {"verdict": "inconclusive", "p_value": p_value, "looks": looks}
    text = told("undecided", final, [trial("accepted")])
    assert ("; p = 0.1, a proof needs 0.002 or less" in text) is holds


def test_what_is_saved_is_said_with_the_speed_that_is_kept():
    need = {"need_a": [812 * 2**20] * 4, "need_b": [503 * 2**20] * 4, "need": [0.62, 0.6, 0.65]}
    tried = trial("accepted", ratio=1.0, interval=[0.99, 1.01], saved=1.6)
    final = FINAL | need | {"ratio": 1.0, "low": 0.99, "high": 1.01}
    found = content("proven", final, [tried, trial("no_gain", saved=1.0)], goal="memory")
    text = " ".join(text_of(found).split())
    saved = "x0.62 (0.60 to 0.65) the memory of the original"
    assert text.startswith(f"proven: {saved}, at x1.00 (0.99 to 1.01) its speed ")
    for said in ("memory 812 MiB -> 503 MiB", "needs less and is as fast, accepted", "needs no less"):
        assert said in text
    assert text.split("Tried")[1].count("x0.62") == 1
    assert saved in tune_text.pull_request(found)
    nothing = "nothing to save: no change of the data pipeline's settings saves CPU time of a step at the same speed"
    assert told("nothing_to_gain", goal="cores").startswith(nothing)


def test_a_proven_cache_says_from_which_epoch_on():
    text = told("proven", FINAL, [trial("accepted", what=changed({"cache": [None, 2**31]}))])
    assert text.startswith("proven: x1.90 (1.85 to 1.95) the speed of the original from the second epoch on")
    assert "rows kept in memory, at most 2.00 GiB" in text


def test_no_line_is_wider_than_a_terminal():
    long = [dict(WHAT[0], name="rotate_and_scale_pictures_of_all_sizes_from_storage" * 3)]
    patch = PATCH | {"by_hand": [dict(one, place="very/" * 30 + "x.py:3") for one in PATCH["by_hand"]]}
    found = content("proven", FINAL, [trial("accepted", what=long)], patch=patch)
    assert max(map(len, text_of(found, ["patch.diff"], "t" * 60, width=80).splitlines())) <= 80


def test_variables_are_listed_as_they_are_set():
    what = [{"op": "environment", "op_id": None, "name": None, "change": {"A": [None, "1"], "B": [None, "1"]}}]
    assert speedup.changes(what) == "environment: A=1, B=1"


def test_small_files_are_advised_with_the_code():
    small = {"op_id": 3, "op_type": "GeneratorOp", "name": "Pictures", "site": "train.py:7", "share": 0.8,
             "read_bytes": 2048.0, "most": 2.5}  # fmt: skip
    found = content("nothing_to_gain", seen=[{"not_worth": [], "other_sites": [], "small_files": small}])
    lines = text_of(found, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "waits 80.0 % of a row's time for small files, 2.00 KiB each" in text
    assert "at most x2.50" in text
    assert {line.strip() for line in (*storage.WRITE, *storage.READ)} <= {line.strip() for line in lines}


def test_the_code_that_writes_small_files_into_one_runs(tmp_path, monkeypatch):
    """As it is printed: the pictures come back as they were, in their order."""
    import mindspore.dataset as ds
    import numpy as np

    cv2 = pytest.importorskip("cv2")
    monkeypatch.chdir(tmp_path)
    files = [(f"{number}.png", number) for number in range(6)]
    for name, number in files:
        cv2.imwrite(name, np.full((4, 4, 3), number, np.uint8))
    known = {"ds": ds, "vision": ds.vision, "files": files}
    exec("\n".join(storage.WRITE), known)  # noqa: S102 - it is what users are told to run
    exec("\n".join(storage.READ).replace('"label"]', '"label"], shuffle=False'), known)  # noqa: S102
    rows = list(known["data"].create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [(int(row["label"]), row["image"].shape, int(row["image"].max())) for row in rows] == [
        (number, (4, 4, 3), number) for number in range(6)
    ]


ALL_IN = PATCH | {"by_hand": []}
BEHIND = [dict(WHAT[0], op="GeneratorOp 2", op_id=2, node=2)]
LEFT = "- `lib.py:7: num_parallel_workers=2`\n- `train.py:8: num_parallel_workers=2`"


@pytest.mark.parametrize(("found", "holds", "lacks"), [
    ({}, ["x1.90 (1.85 to 1.95) the speed of the original with 95 % confidence", ("4 pairs of interleaved runs of "
          "`python train.py --name 'a'b'`: 10.0 to 19.0 steps/s; p = 1e-06")], []),
    ({"patch": PATCH}, ["The diff changes other pipelines, too, which were not compared: `train.py:9`.",
                        f"Not in the diff, but needed for that figure:\n\n{LEFT}\n\n"], []),
    ({"patch": ALL_IN}, [], ["Not in the diff"]),
    ({"stop_after": 1500}, ["'a'b'`, each ended after 1,500 training steps: 10.0 to 19.0 steps/s"], []),
    ({"failed_runs": [failed(("a", 0))[0] | {"folder": "trial-0"}, *failed(("b", 1))]},
     ["Runs that failed: 0 unchanged, 1 changed."], []),
    # A cache that was accepted later does without what stands behind it.
    ({"trials": [trial("accepted", what=BEHIND), trial("accepted")]}, ["MapOp 1"], ["GeneratorOp 2"]),
])  # fmt: skip
def test_the_paragraph_for_a_pull_request_has_the_figures_and_what_they_need(found, holds, lacks):
    text = paragraph(**found)
    assert [said for said in holds if said not in text] == []
    assert [said for said in lacks if said in text] == []


BACK = [{"workers": [1, 2], "processes": [False, False]}, {"maps_after": [0, 1]},
        {"workers": [2, 4], "prefetch": [16, 2]}, {"prefetch": [2, 16]}]  # fmt: skip


@pytest.mark.parametrize(("trials", "listed"), [
    ([trial("accepted"), trial("slower")], ["workers 1 -> 2"]),
    ([trial("accepted", what=changed(one)) for one in BACK],
     ["workers 1 -> 4, processes no", "in front of the map that feeds it"]),
    ([trial("accepted", what=changed({"prefetch": [16, 64]})),
      trial("accepted", what=changed({"prefetch": [64, 2]}, 0, op="MapOp 1"))], ["prefetch 16 -> 2"]),
])  # fmt: skip
def test_what_was_changed_twice_is_told_once_in_the_paragraph(trials, listed):
    lines = [line for line in paragraph(trials=trials, patch=ALL_IN).splitlines() if line.startswith("-")]
    assert lines == [f"- `MapOp 1 'rotate': {change}`" for change in listed]


def test_random_numbers_are_named_at_the_end_of_the_paragraph():
    assert paragraph(RANDOM).endswith("numbers in `Image`.\n")
