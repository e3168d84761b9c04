"""`pipeprof serve`: a real server on a real socket, asked over HTTP and in a browser."""

import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from html import unescape
from urllib.parse import quote

import hostile
import pytest
from click.testing import CliRunner
from hostile import NAMES

from pipeprof.cli import cli
from pipeprof.errors import UsageError
from pipeprof.report import html
from pipeprof.report.build import build
from pipeprof.serve import app as room
from pipeprof.serve import check_installed
from pipeprof.serve.site import Site

pytestmark = pytest.mark.usefixtures("own_cache")

OWN = re.compile(r"</?(?:a|button|form|input)(?: [^<>]*)?>")  # what no other page of ours has
TOKEN = "the-token"  # noqa: S105


def test_nothing_is_shown_without_the_token(served, recorded):
    recorded("secret.run")
    ask = served()
    for path in ("/", "/run/secret.run", "/history", "/?token=wrong", "/?token="):
        for cookie in ("", f"pipeprof-{ask.port}=wrong", f"pipeprof-1={TOKEN}"):
            status, headers, text = ask(path, cookie=cookie)
            assert status == 403
            assert "secret" not in text
            assert headers["cache-control"] == "no-store"


def test_another_name_for_this_machine_is_refused(served):
    ask = served()
    assert ask("/", host=f"localhost:{ask.port}")[0] == 200
    assert ask("/", host="evil.example")[0] == 400
    assert [ask("/", method=method)[0] for method in ("POST", "PUT", "DELETE")] == [405] * 3  # it can only be read
    status, headers, _ = ask(f"/?token={TOKEN}", cookie="")
    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"] == f"pipeprof-{ask.port}={TOKEN}; HttpOnly; Path=/; SameSite=strict"


def test_only_this_machine_can_reach_it(tmp_path):
    with room.bound(0) as at:
        assert at.getsockname()[0] == "127.0.0.1"
        at.listen()
        with pytest.raises(UsageError, match="Address already in use"):
            room.bound(at.getsockname()[1])
    done = CliRunner().invoke(cli, ["serve", str(tmp_path / "none")])
    assert "cannot list the runs in" in str(done.exception)


def test_the_list_shows_what_runs_shows(served, recorded, tmp_path):
    assert "There are no runs" in served()("/")[2]
    recorded("first", 1)
    recorded("second", 2, 20)
    broken = recorded("broken", 3)
    (broken.path / "run.json").write_text("{")
    text = served()("/")[2]
    rows = re.findall(r"<tr>(.*?)</tr>", text)[1:]
    assert [re.findall(r'href="/run/([^"]+)"', row) for row in rows] == [["broken"], ["second"], ["first"]]
    assert ['type="checkbox"' in row for row in rows] == [False, True, True]
    assert 'data-value="20000000.0">20.0 ms' in rows[1]
    assert "damaged" in rows[0]


def test_runs_of_one_command_are_one_workload_with_its_step_times_and_its_newest_verdict(served, recorded):
    for minute in range(3):
        recorded(f"run{minute}", minute, 10 * (minute + 1))
    other = recorded("other", 5)
    other.manifest.command = ["python", "other.py"]
    other.save()
    text = served()("/")[2]
    lines = re.findall(r'<li><a href="/\?search=([^"]*)">.*?</a> <span class="soft">(.*?)</span>(.*?)</li>', text)
    assert [(unescape(search), about) for search, about, _ in lines] == [
        ("python%20train.py", "3 runs, 30.0 ms"), ("python%20other.py", "1 run, 10.0 ms"),
    ]  # fmt: skip
    assert 'points="2.0,18.0 60.0,10.0 118.0,2.0"' in lines[0][2]
    assert "<svg" not in lines[1][2]


def test_a_run_that_is_recorded_now_comes_first_with_the_figures_of_top(served, recorded, recording):
    recorded("done", 1)
    ask = served()
    text = ask("/")[2]
    assert text.index("Recorded now") < text.index('href="/run/now"') < text.index("<h2>Runs</h2>")
    assert "1 steps/s, median step 1.00 s" in text
    assert "3 of 4 in the queue behind MapOp" in text
    assert "connect-src 'self'" in text
    again = ask("/live")[2]
    assert "2 steps/s" in again
    assert "steps per second of the last 2 looks" in again


def test_what_is_recorded_has_another_mark_when_a_run_is_added_or_has_ended(served, recorded, recording):
    ask = served()

    def mark(path):
        return re.search(r'data-mark="([^"]*)"', ask(path)[2])[1]

    first = mark("/")
    assert mark("/live") == first
    recorded("another", 3)
    second = mark("/live")
    assert second != first
    recording.manifest.state = "complete"
    recording.save()
    assert len({first, second, mark("/live")}) == 3


def test_a_run_is_shown_as_its_report_which_is_made_once_until_the_run_changes(served, recorded, monkeypatch):
    made = []
    monkeypatch.setattr("pipeprof.serve.site.build", lambda run: made.append(run) or build(run))
    run = recorded("first")
    ask = served()
    status, headers, text = ask("/run/first")
    assert (status, ask("/run/first")[2], len(made)) == (200, text, 1)
    way = '<nav aria-label="site"><a href="/">All runs</a></nav>\n<main>\n'
    assert text == html.of_run(run, build(run)).replace("<main>\n", way, 1)
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "pipeprof report" in text
    assert "pipeprof report" not in ask("/history")[2]  # a page about the same run
    run.manifest.command = ["python", "other.py", "--and", "more"]
    run.save()
    assert "other.py" in ask("/run/first")[2]


def test_two_ticked_runs_are_compared_the_older_as_the_base(served, recorded):
    recorded("slow", 2, 20)
    recorded("fast", 1, 10)
    ask = served()
    status, _, text = ask("/compare?run=slow&run=fast")
    assert status == 200
    assert re.search(r'>step time</td><td class="number"[^>]*>10.0 ms</td><td class="number"[^>]*>20.0 ms', text)
    for wrong in ("/compare", "/compare?run=slow", "/compare?run=slow&run=slow"):
        status, _, text = ask(wrong)
        assert (status, "tick two runs of the list" in text) == (400, True)


def test_the_history_of_the_folder_and_what_all_runs_lose_are_pages(served, recorded, tmp_path):
    for minute in range(3):
        run = recorded(f"run{minute}", minute)
    ask = served()
    status, _, text = ask("/history")
    assert (status, text.count("<circle")) == (200, 3 * text.count("<svg"))
    status, _, text = ask("/fleet")
    assert (status, "3 runs in " in text) == (200, True)
    shutil.copytree(run.path, tmp_path / "runs" / "copy")
    text = ask("/fleet")[2]
    assert "3 runs in " in text
    assert "1 run is there twice and counted once" in text


@pytest.mark.parametrize("path", ["/run/none", "/run/..", "/run/%2e%2e%2foutside", "/run/../../etc/passwd", "/nothing"])
def test_nothing_outside_of_the_folder_is_found(served, recorded, tmp_path, path):
    shutil.copytree(recorded("first").path, tmp_path / "outside")
    status, _, text = served()(path)
    assert status == 404
    assert "All runs" in text


def test_a_run_that_is_linked_from_outside_is_not_shown(served, recorded, tmp_path):
    run = recorded("mine")
    shutil.copytree(run.path, tmp_path / "elsewhere" / "foreign")
    tmp_path.joinpath("runs", "foreign").symlink_to(tmp_path / "elsewhere" / "foreign")
    tmp_path.joinpath("runs", "again").symlink_to("mine")
    ask = served()
    listed = ask("/")[2]
    assert "foreign" not in listed
    assert "again" in listed
    assert ask("/run/foreign")[0] == 404
    assert ask("/compare?run=mine&run=foreign")[0] == 404
    for page in ("/history", "/fleet"):
        assert "foreign" not in ask(page)[2]


def test_a_run_that_changed_on_disk_is_an_error_in_words(served, recorded, monkeypatch):
    run = recorded("first", 1)
    run.manifest.state = "running"  # nobody records it any more
    run.save()
    ask = served()
    status, _, text = ask("/run/first")
    assert status == 404
    assert "the recording was cut off" in text
    assert "pipeprof report" in text
    run = recorded("second", 1)  # removed while its page is made
    monkeypatch.setattr("pipeprof.serve.site.refuse_changed", lambda run: shutil.rmtree(run.path))
    status, _, text = ask("/run/second")
    assert status == 404
    assert f"No such file or directory: <code>{run.path}/run.json</code>" in text


def test_a_recording_that_was_cut_off_is_named_and_not_changed(served, recorded, tmp_path):
    for minute, name in enumerate(("first", "second", "a cut")):
        run = recorded(name, minute)
    run.manifest.state = "running"
    run.save()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ask = served()
    assert "<p>a cut: the recording was cut off" in ask("/")[2]
    status, _, text = ask("/history")
    assert (status, "a cut</code>: it is still being recorded" in text) == (200, True)
    status, _, text = ask("/compare?run=a%20cut&run=first")
    assert (status, "the recording was cut off" in text) == (404, True)
    assert f"pipeprof report '{tmp_path}/runs/a cut'" in unescape(text)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_run_that_is_recorded_now_is_looked_at_again(served, recording):
    ask = served()
    page = ask("/run/now")[2]
    assert "rank 0 is training &lt;b&gt;" in page
    assert 'data-live="/live/now" data-mark="recording"' in page
    assert "2 steps/s" in ask("/live/now")[2]
    recording.manifest.state = "complete"
    recording.save()
    assert 'data-mark=""' in ask("/live/now")[2]
    assert "pipeprof report" in ask("/run/now")[2]


def test_looks_at_runs_that_are_recorded_are_made_one_at_a_time(recording, a_look, monkeypatch, tmp_path):
    at_once = []
    site = Site(tmp_path / "runs")
    monkeypatch.setattr("pipeprof.report.top.Watch.look", lambda _self: at_once.append(site._one.locked()) or a_look)
    site.run("now")
    site.now()
    site.now_of("now")
    assert at_once == [True] * 3


@pytest.mark.parametrize("name", ["tab\tbed", "50%", "%2541", "a b", "op::warning::late"])
def test_runs_of_any_name_can_be_ticked_and_compared(served, recorded, name):
    recorded("base", 1)
    recorded(name, 2, 20)
    ask = served()
    values = [unescape(value) for value in re.findall(r'name="run" value="([^"]*)"', ask("/")[2])]
    status, _, _ = ask("/compare?" + "&".join(f"run={quote(value)}" for value in values))
    assert (status, len(values)) == (200, 2)


def test_hostile_names_are_text(served, recorded):
    names = (name.encode("utf-8", "surrogateescape" if "\udcff" in name else "replace") for name in NAMES)
    folders = [os.fsdecode(name) for name in names if not set(name) & set(b"/\0") and len(name) < 200]
    for minute, name in enumerate(folders[::5]):
        recorded(name, minute).manifest.command = list(NAMES)
    ask = served()
    text = ask("/")[2]
    hostile.check_html(OWN.sub("", text))
    links = re.findall(r'href="(/run/[^"]+)"', text)
    assert len(links) == len(folders[::5])
    assert ask(links[0])[0] == 200
    hostile.check_html(OWN.sub("", ask("/run/" + quote("<script>alert(1)</script>"))[2]))


def test_without_the_extra_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("pipeprof.serve.find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(UsageError, match="needs uvicorn") as error:
        check_installed()
    assert error.value.hint == "pip install 'pipeprof[serve]'"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_verb_prints_its_address_and_ends_quietly(tmp_path, end):
    words = [sys.executable, "-m", "pipeprof", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:([0-9]+)/\?token=(\S{32})", address)
        link = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        with contextlib.closing(link):
            link.request("GET", f"/?token={found[2]}")
            assert link.getresponse().status == 303
        process.send_signal(end)
        assert process.wait(60) == (0 if end == signal.SIGINT else -signal.SIGTERM)
        assert process.stderr.read().count("\n") == 1  # what it said at its start


def test_in_a_browser_runs_are_searched_sorted_ticked_and_compared(served, recorded, browser, barriers):
    recorded("fast", 1, 10)
    recorded("slow", 2, 20)
    recorded("other", 3, 15)
    complaints = []
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_default_timeout(60_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    ask = served()
    page.goto(f"http://127.0.0.1:{ask.port}/?token={TOKEN}")
    assert "token" not in page.url
    assert barriers(page) == []

    def names():
        return page.locator("tbody tr:visible th").all_text_contents()

    def follow(role, name):
        with page.expect_navigation():
            page.get_by_role(role, name=name).click()

    assert names() == ["other", "slow", "fast"]
    page.get_by_role("button", name="step").click()
    assert names() == ["slow", "other", "fast"]
    page.get_by_role("searchbox").fill("SLO")
    assert names() == ["slow"]
    page.reload()
    assert names() == ["slow"]  # what is searched for is a part of the address, and so is the order
    page.get_by_role("searchbox").fill("")
    assert names() == ["slow", "other", "fast"]
    assert "sort=step" in page.url
    page.get_by_label("compare slow").check()
    page.get_by_label("compare fast").check()
    follow("button", "Compare the two ticked runs")
    assert "/compare?run=slow&run=fast" in page.url
    assert barriers(page) == []
    follow("link", "All runs")
    follow("link", "other")
    assert "pipeprof report" in page.title()
    page.set_viewport_size({"width": 400, "height": 800})
    follow("link", "All runs")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.close()
    assert complaints == []
