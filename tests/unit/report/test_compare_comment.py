"""The comment on a pull request: ten lines that a stranger can read, then a fold with everything."""

import pytest
from comparisons import EXIT, HOSTILE, comparison, edit, hostile, metric, setting, trust

from pipeprof.report.compare import comment as compare_comment
from pipeprof.report.compare import github as compare_github

FOLD = "<details>"
SESSION = {"seconds": 740.0, "discarded": ["base-000", "new-000"], "stopped": "decided"}


def three(verdict, **other):
    return [
        metric(verdict=verdict, **other),
        metric("data_wait", ratio=1.01, ci_low=0.98, ci_high=1.03),
        metric("peak_memory", unit="bytes", base=2**30, new=2**30, ratio=1.0, ci_low=0.999, ci_high=1.001),
        metric("step_time_p90", "regressed", family="informing"),
    ]


def shown(content):
    """What stands before the fold, as lines that a reader sees."""
    text = compare_github.comment(content)
    above = text[: text.index(FOLD)].splitlines()[1:]
    return [line for line in above if line.strip() and not line.startswith("| ---")]


def caused(**other):
    content = comparison(metrics=three("regressed"), session=SESSION, **other)
    content["explanation"][0] |= {"place_base": "data.py:38", "place_new": "data.py:41"}
    return content


@pytest.mark.parametrize("verdict", sorted(EXIT))
@pytest.mark.parametrize("edits", [(), [edit(settings=[setting()]), edit("workload", "train.py")]])
def test_at_most_ten_lines_stand_before_the_fold(verdict, edits):
    content = comparison(verdict, metrics=three(verdict), session=SESSION, trust=trust(edits))
    content["explanation"] *= 20
    lines = shown(content)
    assert len(lines) <= 10
    assert sum(line.startswith("| ") for line in lines) == 4
    assert any(line.startswith("**What to do:**") for line in lines)
    text = compare_github.comment(content)
    assert text.count(FOLD) == text.count("</details>")
    assert "pipeprof" not in " ".join(lines).replace("pipeprof.toml", "")


def test_a_regression_says_what_where_and_what_to_do():
    lines = shown(caused())
    assert lines[0] == (
        "### Performance of `demo`: slower than before: step time +8.3 %, "
        "because the wait for map `decode` grew to 2.1x (`data.py:41`)"
    )
    assert lines[2] == "| step time | 12.0 ms | 13.0 ms | +8.3 % (+6.9, +9.8) | **worse** |"
    (cause,) = [line for line in lines if line.startswith("**Cause:**")]
    assert cause.endswith("; at `data.py:41` (before: `data.py:38`)")
    assert any("look at `data.py:41` before this is merged" in line for line in lines)


def test_the_first_line_names_the_metric_that_made_the_check_red():
    by_memory = three("inconclusive")
    by_memory[2] |= {"verdict": "regressed", "ratio": 1.3, "ci_low": 1.25, "ci_high": 1.35}
    lines = shown(comparison("regressed", metrics=by_memory))
    assert lines[0].endswith("worse than before: peak memory +30.0 %")
    assert [line.split("|")[-2].strip() for line in lines[2:5]] == ["**worse**", "too noisy to tell", "same"]
    undecided = comparison("inconclusive", metrics=three("inconclusive"), session=SESSION)
    red = undecided | {"check": {"red": True, "fail_on": ["inconclusive"]}}
    assert shown(undecided)[0].endswith("cannot tell yet: step time")
    assert shown(red)[0].endswith("cannot tell yet: step time, and this check does not pass undecided")
    assert not any("need not block" in line for line in shown(red))
    assert any("`fail-on` names inconclusive here" in line for line in shown(red))
    gone = comparison("missing", metrics=three("missing"))
    assert shown(gone)[0].endswith("a measurement is missing: step time")
    other = {"same": False, "differences": [{"name": "mindspore", "base": "2.3", "new": "2.10", "hard": True}]}
    assert shown(comparison("incomparable", metrics=three("incomparable"), fingerprint=other))[0].endswith(
        "not comparable: other `mindspore`"
    )


def test_an_intended_regression_is_accepted_where_the_policy_is_and_before():
    (line,) = [line for line in shown(caused(trust=trust(path="pyproject.toml"))) if "acknowledge" in line]
    assert "an `acknowledge` entry in `pyproject.toml` in a change of its own, merged before this one," in line
    (line,) = [line for line in shown(caused(trust=None)) if "acknowledge" in line]
    assert "an `acknowledge` entry in `pipeprof.toml`, with a reason and a date" in line


def test_the_cost_is_told_in_minutes_and_runs():
    (line,) = [line for line in shown(caused()) if line.startswith("**Cost:**")]
    assert "8 times on the base and 8 times with this change, alternating, after 2 warm-up runs in 12 min 20 s" in line
    stored = caused()
    del stored["session"]
    stored["new"] |= {"seconds": 61.0}
    (line,) = [line for line in shown(stored) if line.startswith("**Cost:**")]
    assert "ran 8 times in 1 min 01 s, compared with 8 stored repetitions" in line


def test_only_what_is_decided_has_a_cause():
    for verdict in sorted(EXIT):
        lines = shown(comparison(verdict, metrics=three(verdict), session=SESSION))
        assert any("ause:**" in line for line in lines) == (verdict in ("regressed", "improved"))
    unsure = caused()
    unsure["explanation"][0]["proven"] = False
    assert any(line.startswith("**Probable cause:**") for line in shown(unsure))


def test_a_cause_is_named_only_where_the_headline_has_one():
    by_memory = caused()
    by_memory["metrics"][0]["verdict"], by_memory["metrics"][2]["verdict"] = "unchanged", "regressed"
    shrank = caused()
    shrank["explanation"][0]["change"] = "shrank"
    for content in (by_memory, shrank):
        lines = shown(content)
        assert not any("ause:**" in line for line in lines)
        assert any("look for the cause before this is merged" in line for line in lines)


def test_cause_and_place_are_of_the_same_entry():
    content = caused()
    first = content["explanation"][0] | {"change": "shrank", "text": "the forward pass shrank", "name": "forward"}
    content["explanation"].insert(0, first | {"place_new": "model.py:7"})
    (cause,) = [line for line in shown(content) if line.startswith("**Cause:**")]
    assert cause.startswith("**Cause:** the wait for map `decode` grew to 2.1x: ")
    assert cause.endswith("; at `data.py:41` (before: `data.py:38`)")
    assert any("look at `data.py:41` before" in line for line in shown(content))


def test_what_cannot_be_told_says_what_it_cannot_exclude_and_what_would_help():
    open_ = three("inconclusive", reps_needed=31, reps_find=0.05, ci_high=1.09)
    text = " ".join(shown(comparison("inconclusive", metrics=open_, session=SESSION)))
    assert "cannot tell yet" in text
    assert "Step time may still have changed by +9.0 %." in text
    assert "About 31 repetitions per side would probably show a change of 5 %: allow" in text


def test_what_cannot_be_excluded_is_the_worst_end_of_all_that_is_open():
    def text(*open_):
        return " ".join(shown(comparison("inconclusive", metrics=list(open_), session=SESSION)))

    step = metric("step_time_median", "inconclusive", ci_low=0.9, ci_high=1.02)
    memory = metric("peak_memory", "inconclusive", ci_low=0.9, ci_high=1.06)
    speed = metric("samples", "inconclusive", ci_low=0.8, ci_high=1.5, direction="higher")
    assert "Peak memory may still have changed by +6.0 %." in text(step, memory)
    assert "`samples` may still have changed by -20.0 %." in text(step, memory, speed)
    assert "may still have" not in text(step | {"ci_high": 0.995})


def test_repetitions_that_would_settle_what_was_seen_are_not_said_to_decide():
    text = " ".join(shown(comparison("inconclusive", metrics=three("inconclusive", reps_needed=31), session=SESSION)))
    assert "About 31 repetitions per side would probably settle the change seen here" in text
    few = three("inconclusive", reps_needed=5, alpha=None)
    text = " ".join(shown(comparison("inconclusive", metrics=few, session=SESSION)))
    assert "At least 5 repetitions per side are needed: allow more time (`budget`)" in text
    stored = three("inconclusive", reps_needed=3, alpha=None, reason_facts=[{"code": "few_repetitions", "needed": 3}])
    lines = shown(comparison("inconclusive", metrics=stored))  # against a baseline, where no budget is
    assert lines[2].endswith("**too few repetitions** |")
    assert "At least 3 repetitions per side are needed: allow more repetitions (`reps`)" in " ".join(lines)


def test_a_number_that_decides_only_one_of_two_metrics_is_not_promised():
    open_ = three("inconclusive", reps_needed=None)
    open_[1] |= {"verdict": "inconclusive", "reps_needed": 14}
    text = " ".join(shown(comparison("inconclusive", metrics=open_, session=SESSION)))
    assert "repetitions per side would" not in text
    assert "Run it again on a quieter machine" in text


def test_what_cannot_be_told_says_what_these_runs_show_and_that_counts_are_equal():
    counts = [metric(f"count/op{at}", "unchanged", family="deterministic") for at in range(3)]
    plan = {"looks": [[20, 0.008]], "finds": {"repetitions": 20, "change": 0.17, "spread": 0.12}}
    content = comparison("inconclusive", metrics=[*three("inconclusive"), *counts], session=SESSION | {"plan": plan})
    text = " ".join(shown(content))
    assert (
        "varies by 12.0 % between repetitions (standard deviation): with 20 per side slow-downs of about 17 %" in text
    )
    content["session"]["plan"]["finds"]["change"] = None
    assert "with 20 per side even a slow-down of 50 % may well be missed" in " ".join(shown(content))
    assert "3 exact counts, such as how often each operator runs: the same on both sides." in text
    graphs = content | {"metrics": [*three("inconclusive"), metric("count/compilations", family="deterministic")]}
    assert "1 exact count: the same on both sides." in " ".join(shown(graphs)).replace("Exact", "exact")
    assert len(shown(content)) <= 10
    other = [*counts[:2], metric("count/op3", "regressed", family="deterministic")]
    assert "exact count" not in " ".join(shown(comparison("inconclusive", metrics=[*three("inconclusive"), *other])))
    assert "exact count" not in " ".join(shown(comparison("unchanged", metrics=[*three("unchanged"), *counts])))


def test_who_edits_the_judge_is_not_told_that_nothing_has_to_wait():
    open_ = three("inconclusive", reps_needed=31, ci_high=1.09)
    lines = shown(comparison("inconclusive", metrics=open_, session=SESSION, trust=trust([edit("baseline")])))
    assert any(line.startswith("**What to do:** measure it again") and "undecided" in line for line in lines)
    assert not any("need not block" in line for line in lines)


def test_warm_up_of_a_baseline_is_said_with_its_count():
    facts = [{"code": "few_jobs", "jobs": 3, "needed": 8, "limit": 0.3}]
    lines = shown(comparison("inconclusive", metrics=three("inconclusive", reason_facts=facts)))
    assert any("3 of 8 jobs are collected; until then only changes above 30 % fail" in line for line in lines)
    assert lines[2].endswith("**too early to tell** |")


def test_a_runner_of_another_speed_is_said_to_be_one():
    facts = [{"code": "other_speed", "ratio": 1.5, "limit": 0.95}]
    lines = shown(comparison("inconclusive", metrics=three("inconclusive", reason_facts=facts)))
    assert any("took 1.50x as long on this runner" in line and "changes above 95 % fail" in line for line in lines)
    assert lines[2].endswith("**another machine speed** |")


def test_other_conditions_are_named():
    other = {"same": False, "differences": [{"name": "mindspore", "base": "2.3", "new": "2.10", "hard": True}]}
    lines = shown(comparison("incomparable", metrics=three("incomparable"), fingerprint=other))
    assert any("different conditions (`mindspore`)" in line for line in lines)


def test_an_edit_of_the_policy_is_named_before_the_fold_also_when_nothing_changed():
    content = comparison("unchanged", metrics=three("unchanged"), trust=trust([edit(settings=[setting()])]))
    lines = shown(content)
    assert any(line.startswith("**This change edits what it is judged by:**") and "looser" in line for line in lines)
    assert "**What to do:** nothing about the speed; look at what this change edits (next line)." in lines


def test_a_change_of_the_measured_script_alone_is_no_warning():
    lines = shown(comparison("unchanged", metrics=three("unchanged"), trust=trust([edit("workload", "train.py")])))
    assert not any("edits" in line for line in lines)


def test_the_worst_metric_is_among_the_three():
    many = [*three("unchanged"), metric("benchmark/load", "regressed"), metric("benchmark/save")]
    lines = shown(comparison("regressed", metrics=many))
    assert sum(line.startswith("| ") for line in lines) == 4
    assert any("`benchmark/load`" in line for line in lines)
    assert lines[0].endswith("worse than before: `benchmark/load` +8.3 %")


def test_everything_else_is_folded_below():
    text = compare_github.comment(caused())
    below = text[text.index(FOLD) :]
    assert "### Why" in below
    assert "### Notes" in below
    assert "For information, not part of the verdict" in below


def test_names_stay_names_before_the_fold():
    content = hostile()
    content["explanation"][0] |= {"place_base": HOSTILE, "place_new": HOSTILE}
    text = compare_comment.text(content, 5)
    above = text[: text.index(FOLD)]
    assert "<img" not in above.replace("\\<img", "").replace("`", "") or "onerror" in above
    assert "\n::error::" not in above
    assert "\x1b" not in above
    assert "\u202e" not in above
