"""The page of a history in a browser."""

import time

import pytest

from pipeprof.report.document import text
from pipeprof.report.history import document

NOISE = [0.0, 0.2, -0.1, 0.3, -0.2] * 4


def series(metric, unit, values, changes):
    points = [
        {"value": value, "revision": f"{number:040x}", "at": f"2026-11-{number + 1:02}T10:00:00+00:00"}
        for number, value in enumerate(values)
    ]
    return {"workload": "net", "metric": metric, "unit": unit, "anchor": None, "machine": "m", "conditions": "c",
            "points": points, "changes": changes, "enough": True, "median": values[0]}  # fmt: skip


CHANGE = {
    "position": 12, "before": 40e6, "after": 48e6, "ratio": 1.2, "at": "2026-11-13T10:00:00+00:00", "because": "",
    "range": {"good": None, "bad": None, "good_at": None, "bad_at": "2026-11-13"},
}  # fmt: skip
LEVELS = [(40 + noise + 8 * (at >= 12)) * 1e6 for at, noise in enumerate(NOISE)]
STEPS = series("step_time_median", "ns", LEVELS, [CHANGE])
ONE = series("first_step_time", "ns", [21.7e9], []) | {"workload": "<b>other", "enough": False}
CONTENT = {"source": "net", "measurements": 20, "series": [STEPS], "conditions": [], "left_out": []}


def test_a_measurement_that_is_pointed_at_says_its_revision(opened):
    page = opened(text(document(CONTENT), "html"))
    dots = page.locator(".mark-symbol path")
    assert dots.count() == len(NOISE)
    assert page.locator("line[aria-roledescription='rule mark']").count() == 2
    box = dots.nth(19).bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    told = page.wait_for_function(
        "() => [...document.querySelectorAll('.mark-text text')].filter((one) => one.getAttribute('opacity') !== '0'"
        " && one.textContent.includes(', ')).map((one) => [one.textContent, one.getBoundingClientRect().right])[0]"
    ).json_value()
    assert told[0] == "47.8 ms, 0000000000, 2026-11-20T10:00:00+00:00"
    assert told[1] <= 1000


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-11-01"), ("Pacific/Auckland", "2026-11-02")])
def test_dates_are_of_the_time_zone_in_which_runs_are_listed(monkeypatch, zone, day):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        one = series("first_step_time", "ns", [21.7e9], []) | {"enough": False}
        one["points"][0]["at"] = "2026-11-01T20:00:00+00:00"
        assert day in text(document(CONTENT | {"series": [one]}))
        one["points"][0]["at"] = "2026/11/01, in the evening"
        assert "2026/11/01" in text(document(CONTENT | {"series": [one]}))
        change = CHANGE | {"range": CHANGE["range"] | {"good_at": "2026-11-01T20:00:00+00:00", "bad_at": None}}
        assert f"between {day} " in text(document(CONTENT | {"series": [STEPS | {"changes": [change]}]}))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_on_a_narrow_page_what_a_measurement_says_stays_within_it_and_workloads_are_told_apart(opened):
    page = opened(text(document(CONTENT | {"series": [STEPS, ONE]}), "html"), 400)  # nothing is wider than the page
    assert page.locator("thead th").first.inner_text() == "workload"
    assert page.locator("tbody tr td:first-child").all_inner_texts() == ["net", "<b>other"]
    axes = page.eval_on_selector_all(".mark-text.role-axis-title", "all => all.map((one) => one.textContent)")
    assert axes == ["measurement", "ms", "measurement", "s"]
