"""What no person should read on any screen: every text of the stored captures, and of a document of each verb."""

import json
import re
from collections import defaultdict
from html import unescape
from statistics import median

import pytest
from click.testing import CliRunner
from comparisons import comparison, metric
from copies import copy_tree
from documents import DOCUMENTS
from every import every
from msgspec import convert
from test_reports_golden import CAPTURES

from pipeprof.cli import cli
from pipeprof.report import document, top
from pipeprof.report.answer.shape import expected, times
from pipeprof.report.compare import github
from pipeprof.report.compare.content import read
from pipeprof.report.compare.sections import document as compared
from pipeprof.report.summary import median_step_ns
from pipeprof.report.words import suggestions
from pipeprof.report.words.comparison import COUNTED, METRICS
from pipeprof.report.words.names import INTERVALS, PHASES, SINK_STAGES, STAGE_LIMITS
from pipeprof.report.words.verdict import phrase
from pipeprof.serve.site import Site
from pipeprof.verdict.cause import Cause, Gain, RunVerdict
from pipeprof.verdict.data_cause import CODES as DATA
from pipeprof.verdict.ranking import CODES
from pipeprof.verdict.rules import VERDICTS

RUNS = sorted(path.name for path in CAPTURES.iterdir())
WORDS = (["ops"], ["ops", "--group-by", "type"], ["memory"], ["status"], ["report", "--full"], ["report", "--step", "3"],
         ["report", "--format", "markdown"], ["report", "--format", "html"])  # fmt: skip
PAIRS = (("2.10-graph", "2.10-jit"), ("2.10-pynative", "2.7-pynative"), ("2.10-ranks", "2.10-graph"))
LISTS = (
    METRICS,
    COUNTED,
    CODES,
    PHASES,
    INTERVALS,
    STAGE_LIMITS,
    SINK_STAGES,
    {one.code for one in VERDICTS},
)
RAW = {code for codes in LISTS for code in codes if "_" in code or "/" in code}
FORMS = ("terminal", "markdown", "html")
SCREEN = ("sentence", "cause", "place", "action", "gain", "confidence", "confidence_reason")
USAGE = 2  # exit code of a command that does not exist
NEVER = {
    "infinity": r"(?<![\w.])inf\b",
    "nothing": r"\bNone\b",
    "no number": r"\bnan\b",
    "bytes": r"\d,\d{3},\d{3} B\b",
    "mixed interval": r"[+-]\d[\d.,]*( %)? (to|,) \d[\d.,]*x|\d[\d.,]*x(,| to) [+-]\d|[+-]\d[\d.,]* % (\[|\(95 % interval )\d[\d.]*x",
    "code": rf"(?<![\w/.-])({'|'.join(map(re.escape, sorted(RAW)))})(?![\w/.-])",
}
QUOTED = re.compile(r"`[^`\n]*`|<code>.*?</code>|<script.*?</script>|<style.*?</style>", re.DOTALL)

TAG = re.compile(r"</?[a-z][^<>]*>")


def bare(text):
    """Without marks, entities and line ends."""
    return re.sub(r"[\s\\`*_]+", "", unescape(TAG.sub("", text))).lower()


def unfit(text, where=""):
    """What should not stand in a text, each with its line; code between backticks is code."""
    plain = unescape(TAG.sub("\n", QUOTED.sub("", text)))
    found = []
    for what, pattern in NEVER.items():
        for match in re.finditer(pattern, plain):
            line = plain[plain.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
            found.append(f"{where}: {what} `{match.group(0)}` in {line[:160]}")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("screens")
    for name in RUNS:
        copy_tree(CAPTURES / name, path / name)
    return path


def said(folder, monkeypatch, *words):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code != USAGE, done.output
    return done.output


@pytest.mark.parametrize("run", RUNS)
def test_no_screen_of_a_run_says_what_no_person_should_read(folder, monkeypatch, run):
    texts = {" ".join(words): said(folder, monkeypatch, words[0], run, *words[1:]) for words in WORDS}
    assert all(len(text) > 80 for text in texts.values())
    assert [line for words, text in texts.items() for line in unfit(text, f"{words} {run}")] == []


@pytest.mark.parametrize("run", RUNS)
def test_every_screen_says_the_verdict_the_advice_and_the_gain_of_the_report(folder, monkeypatch, run):
    report = json.loads(said(folder, monkeypatch, "report", run, "--format", "json"))
    screen, lead = report["first_screen"], convert(report["verdict"], RunVerdict).lead
    short = (lead.code, phrase(lead), lead.share)
    for words in (("status", run), ("top", run, "--once")):
        verdict = json.loads(said(folder, monkeypatch, *words, "--format", "json"))["verdict"]
        assert (verdict["code"], verdict["text"], verdict["share"]) == short
        assert phrase(lead) in said(folder, monkeypatch, *words)
    (row,) = [
        row
        for row in json.loads(said(folder, monkeypatch, "runs", ".", "--format", "json"))["runs"]
        if row["path"] == run
    ]
    assert (row["cause"], row["cause_text"], row["cause_share"]) == short
    site = Site(folder)
    (line,) = [line for line in site.home().splitlines() if f'href="/run/{run}"' in line]
    assert f">{phrase(lead)}</span></td>" in line
    look = {"state": "recording", "ranks": [{"text": "", "pace": None, "queues": []}], "machine": None}
    live = look | {"verdict": {"training_steps": 1, "training_ns": 2e9, "first_screen": screen}}
    for shown in (said(folder, monkeypatch, "report", run), site.run(run), "\n".join(top.lines(live))):
        assert [name for name in SCREEN if screen[name] and bare(screen[name]) not in bare(shown)] == []


def test_a_fleet_says_the_verdict_the_stage_the_advice_and_the_gain_of_each_report(folder, monkeypatch):
    reports = {run: json.loads(said(folder, monkeypatch, "report", run, "--format", "json")) for run in RUNS}
    asked = said(folder, monkeypatch, "fleet", ".", "--sql", "SELECT * FROM fleet_run", "--format", "json")
    rows = {row["run"]: row for row in json.loads(asked)}
    assert sorted(rows) == RUNS
    shown = bare(said(folder, monkeypatch, "fleet", ".", "--top", "99", "--format", "markdown"))
    fixes = defaultdict(list)
    for run, row in rows.items():
        report, verdict = reports[run], convert(reports[run]["verdict"], RunVerdict)
        lead, data = verdict.lead, verdict.find(DATA)
        assert (row["cause"], row["cause_detail"] or "", row["cause_share"]) == (lead.code, lead.detail, lead.share)
        assert bare(phrase(Cause(lead.code, lead.detail))) in shown
        stage, advice = (data.stage, data.advice) if data else (None, None)
        assert (row["op_type"], row["op_name"]) == ((stage.op_type, stage.name) if stage else (None, None))
        assert (row["advice"], row["parameter"]) == ((advice.code, advice.parameter) if advice else (None, None))
        gain = advice and advice.gain
        gain = gain if gain and gain.origin in ("predicted", "measured") else Gain("bound")
        assert (row["gain"], row["gain_low"], row["gain_high"]) == (gain.times, gain.low, gain.high)
        if lead is data and gain.times and gain.times > 1:
            fixes[suggestions.title(advice.code, stage.name or stage.op_type)].append(gain.times)
            assert expected(gain.times, gain.low, gain.high) in report["first_screen"]["gain"]
    assert fixes
    for title, gains in fixes.items():
        assert bare(title) in shown
        assert bare(f"| {len(gains)} | {times(median(gains))} |") in shown


def test_comment_and_summary_say_the_verdict_the_advice_and_the_gain_of_the_new_run(folder, monkeypatch):
    pair = PAIRS[-1]
    report = json.loads(said(folder, monkeypatch, "report", pair[1], "--format", "json"))
    screen, lead = report["first_screen"], convert(report["verdict"], RunVerdict).lead
    made = said(folder, monkeypatch, "compare", *pair, "--format", "json")
    content = read(made.encode(), "compare.json")  # as the job that comments reads it
    limits = content["limits"]
    assert (limits["code"], limits["text"], limits["share"]) == (lead.code, phrase(lead), lead.share)
    forms = [document.text(compared(content), form) for form in FORMS]
    for shown in (github.comment(content), github.summary(content), *forms):
        assert [name for name in SCREEN if screen[name] and bare(screen[name]) not in bare(shown)] == []


def test_a_history_has_the_step_time_of_each_report(folder, monkeypatch):
    history = json.loads(said(folder, monkeypatch, "history", ".", "--format", "json"))
    points = [point for one in history["series"] if one["metric"] == "step_time_median" for point in one["points"]]
    report = {run: json.loads(said(folder, monkeypatch, "report", run, "--format", "json")) for run in RUNS}
    assert {one["label"]: one["value"] for one in points} == pytest.approx(
        {
            run: median_step_ns([row for row in content["steps"]["summary"] if row["kind"] == "train"])
            for run, content in report.items()
        }
    )
    assert unfit(Site(folder).history(), "history") == []


@pytest.mark.parametrize("form", FORMS)
def test_no_comparison_says_what_no_person_should_read(folder, monkeypatch, form):
    texts = {pair: said(folder, monkeypatch, "compare", *pair, "--format", form) for pair in PAIRS}
    assert [line for pair, text in texts.items() for line in unfit(text, f"compare {' '.join(pair)}")] == []


def test_no_list_and_no_fleet_says_what_no_person_should_read(folder, monkeypatch):
    assert [line for verb in ("runs", "fleet") for line in unfit(said(folder, monkeypatch, verb, "."), verb)] == []


@every(DOCUMENTS)
def test_no_document_of_a_verb_says_what_no_person_should_read(name):
    made = DOCUMENTS[name]()
    texts = {form: document.text(made, form) for form in FORMS}
    assert [line for form, text in texts.items() for line in unfit(text, f"{name} as {form}")] == []


def test_no_comment_says_what_no_person_should_read():
    metrics = [metric(name, verdict="regressed", ratio=9.2, ci_low=7.5, ci_high=18.0, unit="bytes", base=559230121, new=559230185)
               for name in METRICS]  # fmt: skip
    made = comparison(metrics=metrics)
    texts = [
        github.comment(made),
        *github.annotation_lines(made),
        *(document.text(compared(made), form) for form in FORMS),
    ]
    assert [line for text in texts for line in unfit(text, "comment")] == []


@pytest.mark.parametrize(
    "text",
    ["inf times", "about None", "x nan", "559,230,121 B", "+655.9 % to 18x", "[7.6x, +18.0]", "+655.9 % [7.6x, 18x]",
     "step_time_p90  12 ms", "rank_cause leads", "<td>input_bound</td>"],
)  # fmt: skip
def test_what_no_person_should_read_is_found(text):
    assert unfit(text)


@pytest.mark.parametrize(
    "text", ["information", "`step_time_p90`", "559 B", "[7.6x, 18x]", "+6.9 to +9.8 %", "step time p90"]
)
def test_what_a_person_may_read_is_not(text):
    assert unfit(text) == []
