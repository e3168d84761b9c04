"""The result of a tuning for people: what is proven, with figures, in 80 columns."""

import pytest
from documents import FINAL, PATCH, WHAT, trial
from documents import tuned as content

from pipeprof.report import document, table, tune_text
from pipeprof.report.sections import storage
from pipeprof.report.words import speedup


def text_of(*found, width=400):
    return table.plain_text(lambda console: document.draw(console, tune_text.document(*found)), width)


def test_what_is_proven_comes_first_with_its_interval_and_the_change():
    text = text_of(content("proven", FINAL, [trial("accepted")], patch=PATCH), ["patch.diff"], "tuned")
    assert text.startswith("proven: x1.90 (1.85 to 1.95) the speed of the original\n")
    assert "4 pairs of runs, in turn: 10.0 -> 19.0 steps/s" in text
    assert "the first batches are the same, in the same order" in text
    assert "MapOp 1 `rotate`: workers 1 -> 2" in text
    assert "  +a = a.map(f, num_parallel_workers=2)" in text
    assert "lib.py:7: num_parallel_workers=2 (its file is not below the working directory)" in text
    assert "train.py:8: num_parallel_workers=2 (the argument is computed: `args.workers`)" in text
    assert "note: train.py:9 makes operators of other pipelines, too" in text
    assert "Written into tuned: patch.diff" in text
    assert "pipeprof report tuned/look-0" in text


def test_other_pipelines_that_the_diff_changes_are_told_with_it():
    found = content("proven", FINAL, [trial("accepted")], patch=PATCH)
    assert "The diff changes other pipelines, too, which were not compared: `train.py:9`." in tune_text.pull_request(
        found
    )
    early = "note: each run ended early, so pipelines that come later and share these lines were not seen"
    assert early not in text_of(found)
    assert early in text_of(found | {"stop_after": 1500})


@pytest.mark.parametrize(
    ("changed", "hinted"),
    [
        ({}, True),
        ({"error": "the command failed"}, False),
        ({"batches": "other"}, False),
        ({"batches": "not_seen"}, True),
    ],
)
def test_what_cannot_be_compared_in_whole_epochs_may_be_taken_all_the_same(changed, hinted):
    final = FINAL | {"batches": "not_reproducible"} | changed
    hint = "nothing is recommended; --allow-unchecked takes it"
    assert (hint in text_of(content("not_judged", final, [trial("accepted")]))) == hinted
    assert hint not in text_of(content("not_judged", final, [trial("accepted")], allow_unchecked=True))
    kept = [WHAT[0] | {"change": {"cache": [None, 1 << 30]}}]
    assert hint not in text_of(content("not_judged", final, [trial("accepted", what=kept)]))


def test_an_operator_that_was_changed_twice_is_told_once_in_the_paragraph():
    def what(change, node=1):
        return [WHAT[0] | {"op": f"MapOp {node}", "op_id": node, "node": node, "change": change}]

    first, second = (
        what({"workers": [1, 2], "processes": [False, False]}),
        what({"workers": [2, 4], "prefetch": [16, 2]}),
    )
    back = what({"prefetch": [2, 16]})
    accepted = [trial("accepted", what=one) for one in (first, what({"maps_after": [0, 1]}), second, back)]
    text = tune_text.pull_request(content("proven", FINAL, accepted, patch=PATCH | {"by_hand": []}))
    assert [line for line in text.splitlines() if line.startswith("-")] == [
        "- `MapOp 1 'rotate': workers 1 -> 4, processes no`",
        "- `MapOp 1 'rotate': in front of the map that feeds it`",
    ]


def test_the_prefetch_size_is_told_once_whatever_operator_it_was_tried_for():
    changes = {1: [16, 64], 0: [64, 2]}
    what = [WHAT[0] | {"op_id": node, "node": node, "change": {"prefetch": change}} for node, change in changes.items()]
    accepted = [trial("accepted", what=[one]) for one in what]
    text = tune_text.pull_request(content("proven", FINAL, accepted, patch=PATCH | {"by_hand": []}))
    assert [line for line in text.splitlines() if line.startswith("-")] == ["- `MapOp 1 'rotate': prefetch 16 -> 2`"]


def test_what_would_need_leave_to_change_the_order_is_counted():
    seen = {"not_worth": [], "other_sites": [], "permuting": [WHAT, WHAT]}
    asked = "--allow-order would allow 2 more: the same rows, in another order"
    text = text_of(content("nothing_to_gain", seen=[seen]))
    assert asked in text
    assert "makes this training faster with the same batches\n" in text
    allowed = text_of(content("nothing_to_gain", seen=[seen], allow_order=True))
    assert asked not in allowed
    assert "makes this training faster\n" in allowed


def test_the_code_that_writes_small_files_into_one_runs(tmp_path, monkeypatch):
    """As it is printed: the pictures come back as they were, in their order."""
    import mindspore.dataset as ds
    import numpy as np

    cv2 = pytest.importorskip("cv2")
    monkeypatch.chdir(tmp_path)
    files = []
    for number in range(6):
        cv2.imwrite(f"{number}.png", np.full((4, 4, 3), number, np.uint8))
        files.append((f"{number}.png", number))
    known = {"ds": ds, "vision": ds.vision, "files": files}
    exec("\n".join(storage.WRITE), known)  # noqa: S102 - it is what users are told to run
    exec("\n".join(storage.READ).replace('"label"]', '"label"], shuffle=False'), known)  # noqa: S102
    rows = list(known["data"].create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [(int(row["label"]), row["image"].shape, int(row["image"].max())) for row in rows] == [
        (number, (4, 4, 3), number) for number in range(6)
    ]


def test_small_files_are_advised_with_the_code():
    small = {
        "op_id": 3, "op_type": "GeneratorOp", "name": "Pictures", "site": "train.py:7", "share": 0.8, "read_bytes": 2048.0,
        "most": 2.5,
    }  # fmt: skip
    found = content("nothing_to_gain", seen=[{"not_worth": [], "other_sites": [], "small_files": small}])
    text = text_of(found, width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "waits 80.0 % of a row's time for small files, 2.00 KiB each" in " ".join(text.split())
    assert "at most x2.50" in " ".join(text.split())
    lines = [line.strip() for line in text.splitlines()]
    assert all(line.strip() in lines for line in (*storage.WRITE, *storage.READ))


def test_what_is_saved_is_said_with_the_speed_that_is_kept():
    need = {"need_a": [812 * 2**20] * 4, "need_b": [503 * 2**20] * 4, "need": [0.62, 0.6, 0.65]}
    final = FINAL | need | {"ratio": 1.0, "low": 0.99, "high": 1.01}
    tried = trial("accepted", ratio=1.0, interval=[0.99, 1.01], saved=1.6)
    found = content("proven", final, [tried, trial("no_gain", saved=1.0)], goal="memory")
    text = text_of(found)
    assert text.startswith(
        "proven: x0.62 (0.60 to 0.65) the memory of the original, at x1.00 (0.99 to 1.01) its speed\n"
    )
    assert "memory 812 MiB -> 503 MiB" in " ".join(text.split())
    assert text.split("Tried")[1].count("x0.62") == 1
    assert "needs less and is as fast, accepted" in text
    assert "needs no less" in text
    assert "x0.62 (0.60 to 0.65) the memory of the original" in tune_text.pull_request(found)
    nothing = text_of(content("nothing_to_gain", goal="cores"))
    assert " ".join(nothing.split()).startswith(
        "nothing to save: no change of the data pipeline's settings saves CPU time of a step at the same speed"
    )


@pytest.mark.parametrize(
    ("verdict", "final", "begins"),
    [
        ("nothing_to_gain", None, "nothing to gain"),
        ("undecided", None, "undecided: the runs vary too much"),
        ("undecided", FINAL | {"verdict": "inconclusive"}, "undecided: x1.90"),
        ("not_faster", FINAL | {"verdict": "regressed", "ratio": 0.9}, "not faster: x0.90"),
        ("not_judged", FINAL | {"batches": "other"}, "not judged: the batches are not the same"),
        (
            "not_judged",
            FINAL | {"batches": "other", "why": "epoch 2 has other rows"},
            "not judged: epoch 2 has other rows",
        ),
        ("not_judged", FINAL | {"error": "it broke", "a": [], "b": [], "ratio": None}, "not judged: it broke"),
    ],
)
def test_what_is_not_proven_is_not_recommended(verdict, final, begins):
    text = text_of(content(verdict, final))
    assert text.startswith(begins)
    assert tune_text.pull_request(content(verdict, final)) == ""
    assert final is None or "nothing is recommended" in " ".join(text.split())


@pytest.mark.parametrize("verdict", tune_text.TRIALS)
def test_every_trial_is_listed_with_what_was_believed_and_what_came_out(verdict):
    text = text_of(content("nothing_to_gain", None, [trial(verdict, predicted_wrong=True, error="it broke")]))
    joined = " ".join(text.split())
    assert "x1.70 to x2.10 x1.90 (1.80 to 2.00) in 2 pairs, outside the prediction" in joined
    assert tune_text.TRIALS[verdict] in joined


def test_who_ran_out_of_time_learns_how_much_more_is_enough():
    text = " ".join(
        text_of(
            content("undecided", None, [trial("undecided", stopped="budget")], ended="budget", lacks_time=True)
        ).split()
    )
    assert "(1 min 01 s); the same command with --budget 3m or more goes on" in text
    assert "the time was over before the pairs decided" in text


NO_PAIRS = FINAL | {"a": [], "b": [], "ratio": None, "verdict": None}


@pytest.mark.parametrize(("verdict", "lacks_time", "final", "begins"), [
    ("undecided", True, None, "undecided: nothing was proven in the time"),
    ("undecided", True, NO_PAIRS, "undecided: nothing was proven in the time"),
    ("undecided", False, None, "undecided: the runs vary too much"),
    ("undecided", False, NO_PAIRS, "undecided: the runs vary too much"),
    ("not_judged", False, None, "not judged: what may be better hands out batches that cannot be compared"),
])  # fmt: skip
def test_where_no_pair_was_run_no_figure_is_missed(verdict, lacks_time, final, begins):
    text = text_of(content(verdict, final, lacks_time=lacks_time))
    assert text.startswith(begins)
    assert "no figure" not in text
    assert ("the same command with --budget" in text) is lacks_time


@pytest.mark.parametrize(
    ("change", "allowed", "helps"),
    [
        ({"workers": [1, 2]}, False, True),
        ({"workers": [1, 2]}, True, False),
        ({"cache": [None, 2**31]}, False, False),
        ({"maps_after": [0, 1]}, False, False),
    ],
)
def test_leave_is_only_named_where_it_was_not_given_and_helps(change, allowed, helps):
    tried = trial("unchecked", what=[WHAT[0] | {"change": change}])
    text = text_of(content("not_judged", None, [tried], allow_unchecked=allowed, lacks_time=allowed))
    assert ("; --allow-unchecked takes it\n" in text) is helps
    assert text.startswith("not judged: what may be better hands out batches that cannot be compared")
    assert ("the same command with --budget 3m or more goes on" in text) is allowed
    text = text_of(content("undecided", None, [tried, trial("undecided")], allow_unchecked=allowed, lacks_time=True))
    assert ("in the time; --allow-unchecked takes what cannot be compared\n" in text) is helps


def test_what_was_not_timed_is_not_called_faster():
    text = text_of(content("not_judged", None, [trial("unchecked", ratio=None, interval=None)]))
    assert "not measured" in text
    assert "faster" not in text


def test_a_gain_by_other_batches_is_not_denied():
    text = text_of(content("nothing_to_gain", None, [trial("other_data")]))
    assert "makes this training faster with the same batches\n" in text
    text = text_of(content("nothing_to_gain", None, [trial("no_gain")]))
    assert "makes this training faster\n" in text


def test_where_every_change_failed_it_is_said():
    text = text_of(content("not_judged", None, [trial("failed", ratio=None, error="it broke")]))
    assert text.startswith("not judged: every change that was tried failed\n")


def test_a_comparison_of_rows_that_failed_says_nothing_of_batches_or_pairs():
    final = FINAL | {"error": "it broke", "a": [], "b": [], "ratio": None, "batches": "not_seen"}
    text = text_of(content("not_judged", final))
    assert text.startswith("not judged: it broke; nothing is recommended\nevery allowed setting that may help")


def test_what_was_not_proven_for_want_of_time_was_decided_by_its_pairs():
    tried = trial("unproven", stopped="budget", saved=1.6)
    assert "faster, but the whole set with it was not proven" in text_of(content("proven", FINAL, [tried], patch=PATCH))
    less = text_of(content("nothing_to_gain", None, [tried], goal="memory"))
    assert "needs less, but the whole set with it was not proven" in less


def test_who_may_allow_random_numbers_learns_it_and_an_endless_interval_is_left_out():
    tried = trial("other_data", interval=[0.002, 855.0])
    text = " ".join(text_of(content("nothing_to_gain", None, [tried])).split())
    assert "--allow-random compares all but those" in text
    assert "x1.90 in 2 pairs" in text
    proven = FINAL | {"batches": "random", "why": "random operations draw other numbers in `Image`"}
    assert tune_text.pull_request(content("proven", proven, [trial("accepted")])).endswith("numbers in `Image`.\n")
    assert "--allow-random" not in text_of(content("nothing_to_gain", None, [tried], allow_random=True))
    assert "--allow-random" in text_of(content("not_judged", FINAL | {"batches": "other"}))


def test_the_paragraph_lists_what_is_in_the_proven_set_alone():
    """A cache that was accepted later does without what stands behind it."""
    behind = [dict(WHAT[0], op="GeneratorOp 2", op_id=2, node=2)]
    text = tune_text.pull_request(content("proven", FINAL, [trial("accepted", what=behind), trial("accepted")]))
    assert "MapOp 1" in text
    assert "GeneratorOp 2" not in text


def test_variables_are_listed_as_they_are_set():
    what = [{"op": "environment", "op_id": None, "name": None, "change": {"A": [None, "1"], "B": [None, "1"]}}]
    assert speedup.changes(what) == "environment: A=1, B=1"


def test_no_line_is_wider_than_a_terminal():
    long = [dict(WHAT[0], name="rotate_and_scale_pictures_of_all_sizes_from_storage" * 3)]
    patch = PATCH | {"by_hand": [dict(one, place="very/" * 30 + "x.py:3") for one in PATCH["by_hand"]]}
    text = text_of(
        content("proven", FINAL, [trial("accepted", what=long)], patch=patch), ["patch.diff"], "t" * 60, width=80
    )
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_paragraph_for_a_pull_request_has_the_figures():
    text = tune_text.pull_request(content("proven", FINAL, [trial("accepted"), trial("slower")]))
    assert "x1.90 (1.85 to 1.95) the speed of the original with 95 % confidence" in text
    assert text.count("- `MapOp 1 'rotate': workers 1 -> 2`") == 1
    assert "4 pairs of interleaved runs of `python train.py --name 'a'b'`: 10.0 to 19.0 steps/s; p = 1e-06" in text


def test_the_paragraph_says_what_its_figure_needs_beside_the_diff():
    text = tune_text.pull_request(content("proven", FINAL, [trial("accepted")], patch=PATCH))
    left = "- `lib.py:7: num_parallel_workers=2`\n- `train.py:8: num_parallel_workers=2`"
    assert f"Not in the diff, but needed for that figure:\n\n{left}\n\n" in text
    all_in = tune_text.pull_request(content("proven", FINAL, [trial("accepted")], patch=PATCH | {"by_hand": []}))
    assert "Not in the diff" not in all_in


def test_runs_that_failed_are_told():
    failed = [
        {"folder": folder, "side": side, "error": "signal 9", "steps": steps}
        for folder, side, steps in (("trial-0", "a", 0), ("final", "b", 1))
    ]
    found = content("proven", FINAL, [trial("accepted")], failed_runs=failed)
    assert "runs that failed: 1 unchanged, 1 changed (the last: signal 9)" in text_of(found)
    assert "Runs that failed: 0 unchanged, 1 changed." in tune_text.pull_request(found)
    assert "runs that failed" not in text_of(content("proven", FINAL, [trial("accepted")]))


def test_runs_that_ended_early_are_called_so():
    found = content("proven", FINAL, [trial("accepted")], stop_after=1500)
    assert "each run of a pair ended after 1,500 training steps" in " ".join(text_of(found).split())
    assert "'a'b'`, each ended after 1,500 training steps: 10.0 to 19.0 steps/s" in tune_text.pull_request(found)


@pytest.mark.parametrize(
    ("p_value", "looks", "holds"), [(0.9, [4], True), (0.9999, [4], False), (0.9, [], False), (None, [], False)]
)
def test_an_undecided_proof_says_how_far_it_is_from_one(p_value, looks, holds):
    final = FINAL | {"verdict": "inconclusive", "p_value": p_value, "looks": looks}
    text = " ".join(text_of(content("undecided", final, [trial("accepted")])).split())
    assert ("; p = 0.1, a proof needs 0.002 or less" in text) is holds


CACHE = {"op_type": "MapOp", "op_id": 2, "name": "decode", "site": "train.py:9", "bytes": 2**20, "ratio": 1.66, "disk_ratio": 0.5, "changes": None}  # fmt: skip
EVALUATION = {"part": "evaluation", "detail": None, "cause": None, "share": 0.25}


def seen(**more):
    return [{"not_worth": [], "other_sites": [], "caches": [CACHE], "outside": [EVALUATION]} | more]


def test_what_is_to_be_changed_by_hand_stands_there_with_its_gain():
    text = " ".join(text_of(content("nothing_to_gain", seen=seen())).split())
    told = "cache after MapOp 2 decode (train.py:9), 1.00 MiB: predicted x1.66 in memory, x0.50 on the same storage"
    assert told in text
    assert "(25.0 % of the run, at most x1.33 for the whole run)" in text


def test_a_cache_in_front_of_what_was_not_timed_promises_no_number():
    text = text_of(content("nothing_to_gain", seen=seen(caches=[CACHE | {"untimed": True}], outside=[])))
    assert "1.00 MiB: at most x1.66 in memory" in " ".join(text.split())


def test_what_mindspore_will_remove_is_said():
    proven = content("proven", FINAL, [trial("accepted")], patch=PATCH)
    assert "max_rowsize" not in text_of(proven)
    proven["settings"]["operators"][0]["max_rowsize"] = 5
    assert "note: MindSpore 2.8 and later warn of max_rowsize" in " ".join(text_of(proven).split())


def test_a_source_that_is_iterated_is_told_what_would_allow_workers():
    one = {
        "op_id": 3,
        "op_type": "GeneratorOp",
        "name": "rows",
        "site": "train.py:4",
        "workers": 2,
        "low": 1.8,
        "high": 2.2,
    }
    text = " ".join(text_of(content("nothing_to_gain", seen=seen(iterated=[one]))).split())
    assert "GeneratorOp 3 rows (train.py:4), a generator or an iterator, for which MindSpore uses one worker" in text
    assert "with `__getitem__`, `__len__` and 2 workers in threads predicted x1.80 to x2.20" in text


def test_a_cache_that_changes_the_data_says_so():
    text = text_of(content("nothing_to_gain", seen=seen(caches=[CACHE | {"changes": "random"}], outside=[])))
    assert "changes the data: random" in " ".join(text.split())


@pytest.mark.parametrize(
    ("batches", "changes", "holds"),
    [
        ("not_reproducible", None, True),
        ("random", None, True),
        ("other", None, True),
        ("same", None, False),
        ("other", "random", False),
    ],
)
def test_a_cache_of_rows_that_seem_random_says_what_it_would_do_to_them(batches, changes, holds):
    trials = [trial("unchecked", batches=batches)]
    text = text_of(content("nothing_to_gain", trials=trials, seen=seen(caches=[CACHE | {"changes": changes}])))
    assert ("gives every epoch the same ones" in " ".join(text.split())) is holds


HELPER = {
    "part": "child",
    "what": "spin",
    "command": "",
    "pid": 7,
    "processes": 1,
    "site": "train.py:3",
    "cores": 0.9,
    "training_cores": 1.0,
}


@pytest.mark.parametrize(
    ("waits", "told"), [(0.5, "at most x1.50 without it"), (2.0, "at most x1.90"), (None, "no prediction")]
)
def test_a_process_that_spins_is_named_with_the_most_that_its_end_brings(waits, told):
    process = HELPER | {"wait_cores": waits}
    text = " ".join(text_of(content("nothing_to_gain", seen=seen(process=process))).split())
    assert "the process `spin`, started at train.py:3, takes 0.9 cores" in text
    assert told in text


def test_a_process_that_nobody_knows_the_start_of_is_named_too():
    process = HELPER | {"site": "", "wait_cores": None}
    text = " ".join(text_of(content("nothing_to_gain", seen=seen(process=process))).split())
    assert "the process `spin` takes 0.9 cores, and none is idle" in text


def test_a_cache_that_was_tried_is_not_listed_and_one_that_could_not_be_says_why():
    text = text_of(content("nothing_to_gain", seen=seen(caches=[CACHE | {"tried": True}], outside=[])))
    assert "by hand" not in text
    large = [CACHE | {"bytes": 3 * 2**30, "could_be": False}]
    text = " ".join(text_of(content("nothing_to_gain", seen=seen(caches=large, epochs=1), stop_after=40)).split())
    assert "more than the 2.00 GiB that are tried" in text
    assert "two epochs" not in text  # it is not tried then, either
    short = [CACHE | {"could_be": True}]
    text = " ".join(text_of(content("nothing_to_gain", seen=seen(caches=short, epochs=1))).split())
    assert "for two epochs or more)" in text
    text = " ".join(text_of(content("nothing_to_gain", seen=seen(caches=short, epochs=1), stop_after=40)).split())
    assert "for two epochs or more, with --steps all)" in text


def test_a_proven_cache_says_from_which_epoch_on():
    kept = trial("accepted", what=[WHAT[0] | {"change": {"cache": [None, 2**31]}}])
    text = text_of(content("proven", FINAL, [kept]))
    assert text.startswith("proven: x1.90 (1.85 to 1.95) the speed of the original from the second epoch on")
    assert "rows kept in memory, at most 2.00 GiB" in text


def test_nothing_by_hand_where_something_is_to_be_saved():
    assert "by hand" not in text_of(content("nothing_to_gain", seen=seen(), goal="memory"))
