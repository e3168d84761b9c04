"""The comment on a pull request: ten lines that a stranger can read, then a fold with everything."""

import pytest
from comparisons import EXIT, HOSTILE, comparison, edit, hostile, metric, setting, trust

from pipeprof.report.compare import comment as compare_comment
from pipeprof.report.compare import github as compare_github

FOLD = "<details>"
SESSION = {"seconds": 740.0, "discarded": ["base-000", "new-000"], "stopped": "decided"}
PLAN = {"looks": [[20, 0.008]], "finds": {"repetitions": 20, "change": 0.17, "spread": 0.12}}
OTHER = {"same": False, "differences": [{"name": "mindspore", "base": "2.3", "new": "2.10", "hard": True}]}


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


def judged(verdict="inconclusive", metrics=None, **other):
    return comparison(verdict, metrics=metrics or three(verdict), **{"session": SESSION} | other)


def text_of(*args, **other):
    return " ".join(shown(judged(*args, **other)))


def caused(**other):
    content = judged("regressed", **other)
    content["explanation"][0] |= {"place_base": "data.py:38", "place_new": "data.py:41"}
    return content


def line(content, begin):
    """The one line that begins so, or has it where it begins with a blank."""
    (found,) = [one for one in shown(content) if one.startswith(begin) or (begin[0] == " " and begin in one)]
    return found


@pytest.mark.parametrize("verdict", sorted(EXIT))
@pytest.mark.parametrize("edits", [(), [edit(settings=[setting()]), edit("workload", "train.py")]])
def test_at_most_ten_lines_stand_before_the_fold_and_only_what_is_decided_has_a_cause(verdict, edits):
    content = judged(verdict, trust=trust(edits))
    content["explanation"] *= 20
    lines = shown(content)
    assert len(lines) <= 10
    assert sum(line.startswith("| ") for line in lines) == 4
    assert any(line.startswith("**What to do:**") for line in lines)
    text = compare_github.comment(content)
    assert text.count(FOLD) == text.count("</details>")
    assert "pipeprof" not in " ".join(lines).replace("pipeprof.toml", "")
    assert any("ause:**" in line for line in lines) == (verdict in ("regressed", "improved"))


def test_a_regression_says_what_where_and_what_to_do():
    lines = shown(caused())
    assert lines[0] == (
        "### Performance of `demo`: slower than before: step time +8.3 %, "
        "because the wait for map `decode` grew to 2.1x (`data.py:41`)"
    )
    assert lines[2] == "| step time | 12.0 ms | 13.0 ms | +8.3 % (+6.9, +9.8) | **worse** |"
    assert line(caused(), "**Cause:**").endswith("; at `data.py:41` (before: `data.py:38`)")
    assert any("look at `data.py:41` before this is merged" in line for line in lines)
    unsure = caused()
    unsure["explanation"][0]["proven"] = False
    assert line(unsure, "**Probable cause:**")


def test_the_first_line_names_the_metric_that_made_the_check_red():
    by_memory = three("inconclusive")
    by_memory[2] |= {"verdict": "regressed", "ratio": 1.3, "ci_low": 1.25, "ci_high": 1.35}
    many = [*three("unchanged"), metric("benchmark/load", "regressed"), metric("benchmark/save")]
    red = {"check": {"red": True, "fail_on": ["inconclusive"]}}
    for content, end in (
        (judged("regressed", by_memory), "worse than before: peak memory +30.0 %"),
        (judged("regressed", many), "worse than before: `benchmark/load` +8.3 %"),
        (judged(), "cannot tell yet: step time"),
        (judged(**red), "cannot tell yet: step time, and this check does not pass undecided"),
        (judged("missing"), "a measurement is missing: step time"),
        (judged("incomparable", fingerprint=OTHER), "not comparable: other `mindspore`"),
    ):
        assert shown(content)[0].endswith(end)
    rows = shown(judged("regressed", by_memory))[2:5]
    assert [row.split("|")[-2].strip() for row in rows] == ["**worse**", "too noisy to tell", "same"]
    worst = shown(judged("regressed", many))
    assert sum(line.startswith("| ") for line in worst) == 4
    assert any(line.startswith("| `benchmark/load`") for line in worst)  # the worst is among the three
    assert "need not block" not in text_of(**red)
    assert "`fail-on` names inconclusive here" in text_of(**red)
    assert "different conditions (`mindspore`)" in text_of("incomparable", fingerprint=OTHER)


@pytest.mark.parametrize(("where", "said"), [
    (trust(path="pyproject.toml"),
     " `acknowledge` entry in `pyproject.toml` in a change of its own, merged before this one,"),
    (None, " `acknowledge` entry in `pipeprof.toml`, with a reason and a date"),
])  # fmt: skip
def test_an_intended_regression_is_accepted_where_the_policy_is_and_before(where, said):
    assert line(caused(trust=where), said)


def test_the_cost_is_told_in_minutes_and_runs():
    both = "8 times on the base and 8 times with this change, alternating, after 2 warm-up runs in 12 min 20 s"
    assert both in line(caused(), "**Cost:**")
    stored = caused()
    del stored["session"]
    stored["new"] |= {"seconds": 61.0}
    assert "ran 8 times in 1 min 01 s, compared with 8 stored repetitions" in line(stored, "**Cost:**")


def test_a_cause_is_named_only_where_the_headline_has_one_and_with_its_own_place():
    by_memory, shrank, later = caused(), caused(), caused()
    by_memory["metrics"][0]["verdict"], by_memory["metrics"][2]["verdict"] = "unchanged", "regressed"
    shrank["explanation"][0]["change"] = "shrank"
    for content in (by_memory, shrank):
        assert "ause:**" not in " ".join(shown(content))
        assert line(content, " look for the cause before this is merged")
    first = later["explanation"][0] | {"change": "shrank", "text": "the forward pass shrank", "name": "forward"}
    later["explanation"].insert(0, first | {"place_new": "model.py:7"})
    cause = line(later, "**Cause:**")
    assert cause.startswith("**Cause:** the wait for map `decode` grew to 2.1x: ")
    assert cause.endswith("; at `data.py:41` (before: `data.py:38`)")
    assert line(later, " look at `data.py:41` before")


STEP = metric("step_time_median", "inconclusive", ci_low=0.9, ci_high=1.02)
MEMORY = metric("peak_memory", "inconclusive", ci_low=0.9, ci_high=1.06)
SPEED = metric("samples", "inconclusive", ci_low=0.8, ci_high=1.5, direction="higher")
COUNTS = [metric(f"count/op{at}", "unchanged", family="deterministic") for at in range(3)]
FEW = {"reason_facts": [{"code": "few_repetitions", "needed": 3}]}


def undecided(**other):
    return three("inconclusive", **other)


@pytest.mark.parametrize(("metrics", "other", "holds", "lacks"), [
    (undecided(reps_needed=31, reps_find=0.05, ci_high=1.09), {}, [
        "cannot tell yet", "Step time may still have changed by +9.0 %.",
        "About 31 repetitions per side would probably show a change of 5 %: allow"], []),
    ([STEP, MEMORY], {}, ["Peak memory may still have changed by +6.0 %."], []),
    ([STEP, MEMORY, SPEED], {}, ["`samples` may still have changed by -20.0 %."], []),
    ([STEP | {"ci_high": 0.995}], {}, [], ["may still have"]),
    (undecided(reps_needed=31), {}, ["About 31 repetitions per side would probably settle the change seen here"], []),
    (undecided(reps_needed=5, alpha=None), {},
     ["At least 5 repetitions per side are needed: allow more time (`budget`)"], []),
    (undecided(reps_needed=3, alpha=None, **FEW), {"session": None},  # against a baseline, where no budget is
     ["**too few repetitions** |", "At least 3 repetitions per side are needed: allow more repetitions (`reps`)"], []),
    ([STEP, MEMORY | {"reps_needed": 14}], {}, ["Run it again on a quieter machine"], ["repetitions per side would"]),
    ([*undecided(), *COUNTS], {"session": SESSION | {"plan": PLAN}}, [
        "varies by 12.0 % between repetitions (standard deviation): with 20 per side slow-downs of about 17 %",
        "3 exact counts, such as how often each operator runs: the same on both sides."], []),
    (undecided(), {"session": SESSION | {"plan": PLAN | {"finds": PLAN["finds"] | {"change": None}}}},
     ["with 20 per side even a slow-down of 50 % may well be missed"], []),
    ([*undecided(), metric("count/compilations", family="deterministic")], {},
     ["1 exact count: the same on both sides."], []),
    ([*undecided(), *COUNTS[:2], metric("count/op3", "regressed", family="deterministic")], {}, [], ["xact count"]),
    (undecided(reps_needed=31, ci_high=1.09), {"trust": trust([edit("baseline")])},  # who edits the judge
     ["**What to do:** measure it again", "undecided"], ["need not block"]),
    (undecided(reason_facts=[{"code": "few_jobs", "jobs": 3, "needed": 8, "limit": 0.3}]), {"session": None},
     ["**too early to tell** |", "3 of 8 jobs are collected; until then only changes above 30 % fail"], []),
    (undecided(reason_facts=[{"code": "other_speed", "ratio": 1.5, "limit": 0.95}]), {"session": None},
     ["**another machine speed** |", "took 1.50x as long on this runner", "changes above 95 % fail"], []),
])  # fmt: skip
def test_what_cannot_be_told_says_what_it_cannot_exclude_and_what_would_help(metrics, other, holds, lacks):
    content = judged("inconclusive", metrics, **other)
    text = " ".join(shown(content)).replace("Exact", "exact")
    assert len(shown(content)) <= 10
    assert [said for said in holds if said not in text] == []
    assert [said for said in lacks if said in text] == []


def test_counts_are_not_told_where_nothing_is_open():
    assert "xact count" not in text_of("unchanged", [*three("unchanged"), *COUNTS])


def test_an_edit_of_the_policy_is_named_before_the_fold_also_when_nothing_changed():
    content = judged("unchanged", trust=trust([edit(settings=[setting()])]))
    assert "looser" in line(content, "**This change edits what it is judged by:**")
    assert "**What to do:** nothing about the speed; look at what this change edits (next line)." in shown(content)
    assert "edits" not in text_of("unchanged", trust=trust([edit("workload", "train.py")]))  # the measured script alone


def test_everything_else_is_folded_below():
    text = compare_github.comment(caused())
    below = text[text.index(FOLD) :]
    for said in ("### Why", "### Notes", "For information, not part of the verdict"):
        assert said in below


def test_names_stay_names_before_the_fold():
    content = hostile()
    content["explanation"][0] |= {"place_base": HOSTILE, "place_new": HOSTILE}
    text = compare_comment.text(content, 5)
    above = text[: text.index(FOLD)]
    assert "<img" not in above.replace("\\<img", "").replace("`", "") or "onerror" in above
    assert [sign for sign in ("\n::error::", "\x1b", "\u202e") if sign in above] == []
